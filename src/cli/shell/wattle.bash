# Completion of wattle for bash, made from the tables of its --help. Installed where bash-completion looks; `wattle --completion
# bash` prints it.

# Words as the program gets them: bash cuts at = and :, and tells so only by having them as words of their own, without a
# blank before them.
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

_wattle_names() { # those of a list that begin with $cur
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
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

_wattle_of_kind() {
	case $1 in
		=*) _wattle_names "${1#=}" ;;
		files) _wattle_files ;;
		runs) _wattle_files sqlite ;;
		json | onnx) _wattle_files "$1" ;;
		folders) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); compopt -o filenames 2>/dev/null ;;
		named_runs)
			if [[ $cur == *=* ]]; then
				cur=${cur#*=}
				_wattle_files sqlite json
			else
				compopt -o nospace 2>/dev/null # NAME= comes first, and only the user knows it
			fi ;;
		devices) _wattle_names "$("${COMP_WORDS[0]}" --complete devices 2>/dev/null)" ;;
		pids) _wattle_names "$(cd /proc 2>/dev/null && echo [0-9]*)" ;;
	esac
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
	local words places cur i word command= operands=0 takes target= dashes=
	COMPREPLY=()
	_wattle_read_words
	local last=$((${#words[@]} - 1))
	cur=${words[last]}
	for ((i = 1; i < last; i++)); do
		word=${words[i]}
		takes=$(_wattle_takes "$command")
		if [[ -z $command ]]; then
			[[ $word == -* ]] || command=$word
		elif ((operands == 0)) && [[ " $(_wattle_parts "$command") " == *" $word "* ]]; then
			command+=" $word"
		elif [[ $word == -- && $takes ]]; then
			target=${places[i + 1]}
			break
		elif [[ $word == -- ]]; then
			dashes=1
		elif [[ $word == -* && ! $dashes ]]; then
			[[ $word == *=* || -z $(_wattle_value "$command" "$word") ]] || ((i++))
		elif [[ $takes == anywhere && $operands -eq $(_wattle_count "$command") ]]; then
			target=${places[i]}
			break
		else
			((operands++))
		fi
	done
	if [[ $target ]]; then
		for ((i = target; i < COMP_CWORD; i++)); do # wattle bench -- A ::: B
			[[ ${COMP_WORDS[i]} != ::: ]] || target=$((i + 1))
		done
		_wattle_command_line "$target"
		return
	fi

	local value
	if ((i > last)); then # the option before wants a value
		_wattle_of_kind "$(_wattle_value "$command" "${words[last - 1]}")"
	elif [[ $cur == --*=* && ! $dashes ]]; then
		value=$(_wattle_value "$command" "${cur%%=*}")
		cur=${cur#*=}
		_wattle_of_kind "$value"
	elif [[ $cur == -* && ! $dashes ]]; then
		_wattle_names "$(_wattle_options "$command")"
	elif [[ -z $command ]]; then
		_wattle_names "$(_wattle_parts '')"
	elif ((operands == 0)) && [[ $(_wattle_parts "$command") ]]; then
		_wattle_names "$(_wattle_parts "$command")"
	elif [[ $(_wattle_takes "$command") == anywhere && $operands -eq $(_wattle_count "$command") ]]; then
		_wattle_command_line "${places[last]}"
	else
		_wattle_of_kind "$(_wattle_operand "$command" "$operands")"
	fi
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

# From here on: the tables.
