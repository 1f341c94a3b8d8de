# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion of the command redlock for bash.

# Sets $options to the options of the command $1. An option that takes a value is followed by `=`.
_redlock_options() {
    case $1 in
@options@
    *) options= ;;
    esac
}

# Completes the value $2 of the option $1.
_redlock_values() {
    case $1 in
@values@
    esac
}

# Sets $words to the words of the command line, $last to the index of the completed one, and ${at_word[i]} to the index
# of word i in COMP_WORDS. Readline splits "--wait=5s" and "a:6379" into several words of COMP_WORDS.
_redlock_words() {
    local index word line=$COMP_LINE rest
    words=() at_word=() last=0
    for ((index = 0; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        rest=${line#"${line%%[![:blank:]]*}"}
        if [[ $rest == "$line" && $index -gt 0 && $word ]]; then
            words[last]+=$word
        else
            last=${#words[@]}
            words[last]=$word at_word[last]=$index
        fi
        line=${rest#"$word"}
    done
}

# Returns whether the value of the option $1 is the next word: "-t", "--ttl", or "-qt".
_redlock_needs_value() {
    local letters=${1:1}
    [[ " $options " == *" $1= "* ]] && return 0
    [[ $1 == -[!-]?* ]] || return 1
    while ((${#letters} > 1)); do
        [[ " $options " == *" -${letters:0:1}= "* ]] && return 1 # the rest is its value
        letters=${letters:1}
    done
    [[ " $options " == *" -$letters= "* ]]
}

# Looks at the words before the completed one. Sets $inner to the index of the first word of the command that redlock
# runs (0: none yet), $value to the option whose value the completed word is (empty: it is none), and $ended to 1 after
# the "--" that ends the options. $1 is the number of operands before that command.
_redlock_scan() {
    local at word operands=0
    value='' inner=0 ended=0
    for ((at = 2; at <= last; at++)); do
        word=${words[at]}
        if [[ $word == -- ]] && ((at < last)); then
            ended=1 inner=$((at + 1 + $1 - operands))
            ((inner <= last)) || inner=0
            return
        elif [[ $word != -* ]] && ((operands == $1)); then
            inner=$at
            return
        elif [[ $word != -* ]]; then
            operands=$((operands + 1))
        elif ((at < last)) && _redlock_needs_value "$word"; then
            at=$((at + 1))
            ((at < last)) || value=$word
        fi
    done
}

# Completes the words of the command that redlock runs, which begins at COMP_WORDS[$1].
_redlock_inner() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1" # of the package bash-completion: completes as that command does
    elif (($1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    fi
}

# Completes the current word of the command line.
_redlock() {
@commands@
    local options value inner ended last current operands=1000
    local -a words at_word
    COMPREPLY=()
    _redlock_words
    current=${words[last]}
    if ((last == 1)); then
        [[ $current == -* ]] && commands="-h --help -V --version"
        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
        return
    fi
    case ${words[1]} in
    help)
        ((last == 2)) && mapfile -t COMPREPLY < <(compgen -W "${commands% help}" -- "$current")
        return
        ;;
    run) operands=1 ;;
    sandbox) operands=0 ;;
    esac
    _redlock_options "${words[1]}"
    _redlock_scan "$operands"
    if ((inner > 0)); then
        _redlock_inner "${at_word[inner]}"
    elif [[ $value ]]; then
        _redlock_values "$value" "$current"
    elif [[ $current == --*=* ]]; then
        _redlock_values "${current%%=*}" "${current#*=}"
    elif [[ $current == -* && $ended == 0 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${options//=/}" -- "$current")
    fi
}

complete -o filenames -F _redlock redlock
