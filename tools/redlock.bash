# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion for bash. test/cli/manual_test.py compares the options with those of the command.

# Sets $options to the options of the command $1. An option that takes a value is followed by `=`.
_redlock_options() {
    local all="--servers= -s= --config= -f= --prefix= --user= --pass-file= --max-ttl= --connect-timeout=
        --node-timeout= --json --quiet -q --verbose -v --help -h"
    case $1 in
    run)
        options="$all --nonblock -n --wait= -w= --timeout= --conflict-exit-code= -E= --ttl= -t= --grace= -k=
            --renew= --no-renew --signal= --on-loss= --min-hold= --max-hold= --keep --keep-env --command= -c=
            --foreground --preserve-status --allow-nested --export-token --fence --status-fd= --also= -a= --permits="
        ;;
    acquire)
        options="$all --nonblock -n --wait= -w= --timeout= --conflict-exit-code= -E= --ttl= -t= --fence --also=
            -a= --permits="
        ;;
    extend) options="$all --ttl= -t= --also= -a= --token-file=" ;;
    release) options="$all --also= -a= --token-file= --strict" ;;
    status) options="$all --permits=" ;;
    watch) options="$all --interval= -i=" ;;
    nodes) options="$all --wait --timeout= -w= --fence --acl --init" ;;
    break) options="$all --yes" ;;
    config) options="$all --wait= -w= --timeout= --ttl= -t= --grace= -k= --renew=" ;;
    sandbox) options="--nodes= -n= --quiet -q --verbose -v --help -h" ;;
    *) options= ;;
    esac
}

# Completes the value $2 of the option $1.
_redlock_values() {
    case $1 in
    -f | --config | --pass-file | --token-file) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    --on-loss) mapfile -t COMPREPLY < <(compgen -W "stop warn" -- "$2") ;;
    --signal) mapfile -t COMPREPLY < <(compgen -W "HUP INT QUIT TERM USR1 USR2 KILL" -- "$2") ;;
    esac
}

# Sets $operands to the number of operands before the completed word, and $value to the option whose value that
# word is; empty if it is none.
_redlock_scan() {
    local at word
    operands=0 value=
    for ((at = 2; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [[ $word == -- ]]; then
            if [[ $1 == sandbox ]]; then
                operands=1
            else
                operands=2
            fi
            return
        elif [[ " ${options//$'\n'/ } " == *" $word= "* ]]; then
            at=$((at + 1))
            ((at == COMP_CWORD)) && value=$word
        elif [[ $word != -* ]]; then
            operands=$((operands + 1))
        fi
    done
}

# Completes the current word of the command line.
_redlock() {
    local options operands value current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "run acquire extend release status watch nodes break config sandbox
            --help --version" -- "$current")
        return
    fi
    _redlock_options "$command"
    _redlock_scan "$command"
    if [[ $value ]]; then
        _redlock_values "$value" "$current"
    elif [[ ($command == run && $operands -ge 2) || ($command == sandbox && $operands -ge 1) ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current") # the words of another command
    elif [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${options//=/}" -- "$current")
    elif [[ ($command == run && $operands -eq 1) || $command == sandbox ]]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$current")
    fi
}

complete -o filenames -F _redlock redlock
