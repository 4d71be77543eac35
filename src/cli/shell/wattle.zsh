#compdef wattle
# Completion of wattle for zsh, made from the tables of its --help. Installed as _wattle in site-functions; `wattle --completion
# zsh` prints it.

_wattle_devices() {
	local -a devices
	devices=(${(f)"$(_call_program devices $service --complete devices 2>/dev/null)"})
	_wanted devices expl device compadd -a devices
}

_wattle_runs() {
	_files -g '*.sqlite(-.)'
}

_wattle_named_runs() { # NAME=FILE: the name is the user's
	if compset -P '*='; then
		_files -g '*.(sqlite|json)(-.)'
	else
		_message -e names 'NAME=FILE'
	fi
}

# $1: its words so far begin with a command or one of its parts
_wattle_dispatch() {
	local function=_wattle_${1// /_}
	if (( $+functions[$function] )); then
		$function
	else
		_message "wattle has no command $1"
	fi
}

# From here on: the tables.
