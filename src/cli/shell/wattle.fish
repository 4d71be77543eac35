# Completion of wattle for fish: calls the program at each Tab. Installed in vendor_completions.d; `wattle --completion fish`
# prints it.

function __wattle_files # of PREFIX and with these endings, and folders; all files where there is none
	set -l all (complete -C "__fish_command_without_completions $(string sub -s (math (string length -- $argv[1]) + 1) -- (commandline -ct))")
	set -l found
	set -q argv[2]; and set found (string match -e -r "(\\.($(string join '|' $argv[2..-1]))|/)(\t|\$)" -- $all)
	set -q found[1]; or set found $all
	printf '%s\n' $argv[1]$found
end

function __wattle_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	set -l lines (command $words[1] --complete $words[2..-1] "$current" 2>/dev/null)
	set -l kind (string split ' ' -- $lines[1])
	set -l prefix (string match -r -- '^--[^=]*=' "$current")
	switch $kind[1]
		case words
			printf '%s\n' $lines[2..-1]
		case target # what fish would say of that program's own line
			set words $words[(math $kind[2] + 2)..-1]
			complete -C (string join ' ' -- (string escape -- $words) $current)
		case files
			__wattle_files "$prefix"
		case named_runs
			__wattle_files "$(string match -r -- '^[^=]*=' "$current")"
		case runs
			__wattle_files "$prefix" sqlite
		case json onnx
			__wattle_files "$prefix" $kind[1]
		case folders
			__fish_complete_directories
		case pids
			__fish_complete_pids
	end
end

complete -c wattle -f -a '(__wattle_complete)'
