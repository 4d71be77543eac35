#compdef wattle
# Completion of wattle for zsh: calls the program at each Tab. Installed as _wattle in site-functions; `wattle --completion zsh` prints
# it.

_wattle() {
	local kind tab=$'\t'
	local -a lines described
	lines=("${(@f)$(_call_program words ${words[1]} --complete ${(q)${(@Q)words[2,CURRENT-1]}} ${(q)PREFIX} 2>/dev/null)}")
	kind=${lines[1]%% *}
	[[ $kind == words || $PREFIX != --*=* ]] || compset -P '*='
	case $kind in
	words)
		described=("${(@)${(@)${(@)lines[2,-1]}//:/\\:}/$tab/:}")
		_describe -t words 'wattle word' described
		;;
	target)
		shift $(( ${lines[1]#* } + 1 )) words
		(( CURRENT -= ${lines[1]#* } + 1 ))
		_normal
		;;
	files) _files ;;
	folders) _files -/ ;;
	runs) _files -g '*.sqlite(-.)' ;;
	json | onnx) _files -g "*.$kind(-.)" ;;
	named_runs) # [NAME=]FILE
		compset -P '*='
		_files -g '*.(sqlite|json)(-.)'
		;;
	pids) _pids ;;
	esac
}

# Loaded by compinit when it is wanted first, or read by hand.
if [[ $funcstack[1] == _wattle ]]; then
	_wattle "$@"
else
	compdef _wattle wattle
fi
