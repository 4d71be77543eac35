# Completion of wattle for fish, made from the tables of its --help. Installed in vendor_completions.d; `wattle --completion
# fish` prints it.

# What the line so far is about: the command, how many words it has got, and, once another program's command line has begun,
# "target" and its words.
function __wattle_state
	set -l command
	set -l operands 0
	set -l words (commandline -opc)
	set -e words[1]
	while set -q words[1]
		set -l word $words[1]
		set -e words[1]
		if test -z "$command"
			string match -q -- '-*' $word; or set command $word
		else if test $operands -eq 0; and contains -- "$command $word" (__wattle_commands)
			set command "$command $word"
		else if test "$word" = --; and test -n "$(__wattle_takes $command)"
			printf '%s\n' target $words
			return
		else if string match -q -- '-*' $word
			if contains -- "$command $word" (__wattle_values)
				set -e words[1]
			end
		else if test "$(__wattle_takes $command)" = anywhere; and test $operands -eq (__wattle_count $command)
			printf '%s\n' target $word $words
			return
		else
			set operands (math $operands + 1)
		end
	end
	printf '%s\n' "$command" $operands
end

function __wattle_at # COMMAND [N]: its options, or its Nth word, can stand here
	set -l state (__wattle_state)
	test "$state[1]" = "$argv[1]"; or return 1
	set -q argv[2]; or return 0
	test $state[2] -eq $argv[2]
end

function __wattle_at_least # COMMAND N: that word or one after it
	set -l state (__wattle_state)
	test "$state[1]" = "$argv[1]"; and test $state[2] -ge $argv[2]
end

function __wattle_in_target
	set -l state (__wattle_state)
	test "$state[1]" = target
end

function __wattle_at_target # COMMAND: a program's name can stand here
	set -l state (__wattle_state)
	test "$state[1]" = "$argv[1]"; and test "$(__wattle_takes $argv[1])" = anywhere
	and test $state[2] -eq (__wattle_count $argv[1])
end

function __wattle_complete_target # what fish would say of that program's own line
	set -l words (__wattle_state)
	set -e words[1]
	set -l again (contains -i -- ::: $words[-1..1]) # wattle bench -- A ::: B
	if set -q again[1]
		set words $words[(math (count $words) - $again + 2)..-1]
	end
	complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

function __wattle_files # with these endings, and folders; all files where there is none
	set -l all (complete -C "__fish_command_without_completions $(commandline -ct)")
	set -l found (string match -e -r "(\\.($(string join '|' $argv))|/)(\t|\$)" -- $all)
	set -q found[1]; or set found $all
	printf '%s\n' $found
end

function __wattle_devices
	set -l words (commandline -opc)
	command $words[1] --complete devices 2>/dev/null
end

complete -c wattle -f
complete -c wattle -n __wattle_in_target -a '(__wattle_complete_target)'

# From here on: the tables.
