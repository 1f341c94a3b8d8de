#compdef redlock
# SPDX-License-Identifier: MIT
# Completion of the command redlock for zsh.

# Sets $options to the descriptions of the options of the command $1, for _arguments.
_redlock_options() {
    case $1 in
@options@
    *)
        options=()
        ;;
    esac
}

# Completes the name of a subcommand, or one of the words $@, which are of the form NAME:DESCRIPTION.
_redlock_commands() {
    local -a commands
    commands=(
@commands@
        $@
    )
    _describe -t commands command commands
}

# Completes a word of the command that `redlock run` runs; words[1] is the name of the lock. _arguments takes a "--"
# after the name for the command.
_redlock_arguments() {
    shift words
    ((CURRENT--))
    if [[ $words[1] == -- ]]; then
        shift words
        ((CURRENT--))
    fi
    if ((CURRENT == 1)); then
        _command_names -e
    else
        _normal
    fi
}

_redlock() {
    local curcontext=$curcontext state line command
    local -a options operands
    local -A opt_args

    if ((CURRENT == 2)); then
        if [[ $words[2] == -* ]]; then
            _arguments '(- *)'{-h,--help}'[list the subcommands]' '(- *)'{-V,--version}'[print the versions]'
        else
            _redlock_commands 'help:print the help of a subcommand'
        fi
        return
    fi
    command=$words[2]
    curcontext="${curcontext%:*:*}:redlock-$command:"
    shift words
    ((CURRENT--))
    if [[ $command == help ]]; then
        ((CURRENT == 2)) && _redlock_commands
        return
    fi
    _redlock_options $command
    case $command in
    run) operands=('1:name: ' '(-)2:command:_command_names -e' '*::argument:_redlock_arguments') ;;
    sandbox) operands=('(-)1:command:_command_names -e' '*::argument:_normal') ;;
    *) operands=('*:name: ') ;;
    esac
    _arguments -s -S $options $operands
}

_redlock "$@"
