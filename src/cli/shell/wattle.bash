# Completion of wattle for bash: calls the program at each Tab. Installed where bash-completion looks; `wattle --completion bash`
# prints it.

# Words as the program gets them: bash splits at = and :, and passes these as separate words. The line shows that no blank
# precedes them.
_wattle_read_words() {
	local i word line=$COMP_LINE joins=
	words=() places=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $line == [[:space:]]* || $i -eq 0 ]]; then joins=; elif [[ $word == [=:]* ]]; then joins=1; fi
		line=${line#*"$word"}
		if [[ $joins ]]; then
			words[-1]+=$word
			[[ $word == [=:]* ]] || joins=
		else
			words+=("$word") places+=("$i")
		fi
	done
}

_wattle_files() { # with these endings, and folders; all files where there is none, or no ending is given
	local ending found=()
	for ending in "$@"; do
		mapfile -t -O "${#found[@]}" found < <(compgen -f -X "!*.$ending" -- "$cur")
	done
	(($# == 0)) || mapfile -t -O "${#found[@]}" found < <(compgen -d -- "$cur")
	((${#found[@]})) || mapfile -t found < <(compgen -f -- "$cur")
	COMPREPLY=("${found[@]}")
	compopt -o filenames 2>/dev/null
}

_wattle_command_line() { # the words from place $1 on are another program's
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif ((COMP_CWORD == $1)); then
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
	else
		_wattle_files
	fi
}

_wattle() {
	local words places cur i word lines kind rest
	COMPREPLY=()
	_wattle_read_words
	local last=$((${#words[@]} - 1))
	cur=${words[last]}
	mapfile -t lines < <("${COMP_WORDS[0]}" --complete "${words[@]:1}" 2>/dev/null)
	read -r kind rest <<<"${lines[0]}"
	[[ $kind == words || $cur != --*=* ]] || cur=${cur#*=}
	case $kind in
		words) mapfile -t COMPREPLY < <(compgen -W "$(printf '%s\n' "${lines[@]:1}" | cut -f 1)" -- "$cur") ;;
		target) _wattle_command_line "${places[rest + 1]}"; return ;;
		files) _wattle_files ;;
		runs) _wattle_files sqlite ;;
		json | onnx) _wattle_files "$kind" ;;
		folders) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); compopt -o filenames 2>/dev/null ;;
		named_runs)
			cur=${cur#*=}
			_wattle_files sqlite json ;;
		pids) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc 2>/dev/null && echo [0-9]*)" -- "$cur") ;;
	esac
	# Names are of all that was typed; bash replaces what it takes for the last word.
	local typed=${words[last]} before
	word=${COMP_WORDS[COMP_CWORD]}
	if [[ $word == [=:]* ]]; then before=$typed; else before=${typed%"$word"}; fi
	for i in "${!COMPREPLY[@]}"; do
		word=${typed%"$cur"}${COMPREPLY[i]}
		COMPREPLY[i]=${word#"$before"}
	done
}

complete -F _wattle wattle
