# SPDX-License-Identifier: MIT
# Completion of the command redlock for fish.

# Prints the words before the completed one, without the name of the program.
function __redlock_words
    set -l words (commandline -opc)
    test (count $words) -gt 1; and printf '%s\n' $words[2..-1]
end

# Succeeds if no subcommand has been written yet.
function __redlock_no_command
    test (count (__redlock_words)) -eq 0
end

# Succeeds if the value of the option $argv[1] is the next word: "-t", "--ttl", or "-qt". The other arguments are the
# options that take a value.
function __redlock_needs_value
    contains -- "$argv[1]" $argv[2..-1]; and return 0
    string match -qr -- '^-[^-].' "$argv[1]"; or return 1
    set -l letters (string split '' -- (string sub -s 2 -- "$argv[1]"))
    for letter in $letters[1..-2]
        contains -- "-$letter" $argv[2..-1]; and return 1 # the rest is its value
    end
    contains -- "-$letters[-1]" $argv[2..-1]
end

# Looks at the words before the completed one, of which the first is the subcommand. Prints "option" if the completed
# word may be an option, "value" if it is the value of one, "operand" after the "--" that ends the options, or "inner"
# and the words of the command that redlock runs.
function __redlock_scan
    set -l words (__redlock_words)
    set -l valued
    switch "$words[1]"
@values@
    end
    set -l before 1000 # the number of operands before the command that redlock runs
    test "$words[1]" = run; and set before 1
    test "$words[1]" = sandbox; and set before 0
    set -l operands 0
    set -l at 2
    while test $at -le (count $words)
        set -l word $words[$at]
        set -l next (math $at + 1)
        if test "$word" = --
            set -l first (math $next + $before - $operands)
            if test $before -lt 1000 -a (count $words) -ge (math $first - 1)
                echo inner
                test $first -le (count $words); and printf '%s\n' $words[$first..-1]
            else
                echo operand
            end
            return
        else if not string match -q -- '-*' "$word"
            if test $operands -eq $before
                echo inner
                printf '%s\n' $words[$at..-1]
                return
            end
            set operands (math $operands + 1)
        else if __redlock_needs_value "$word" $valued
            if test $at -eq (count $words)
                echo value
                return
            end
            set at $next
        end
        set at (math $at + 1)
    end
    # The first word that is no option begins the command.
    if test $operands -eq $before; and not string match -q -- '-*' (commandline -ct)
        echo inner
    else
        echo option
    end
end

# Succeeds if the completed word may be an option of the subcommand $argv[1], or the value of one.
function __redlock_options_of
    set -l words (__redlock_words)
    test "$words[1]" = "$argv[1]"; or return 1
    contains -- (__redlock_scan)[1] option value
end

# Succeeds if the completed word belongs to the command that redlock runs.
function __redlock_is_inner
    test (count (__redlock_words)) -gt 0; and test (__redlock_scan)[1] = inner
end

# Prints the completions for the words of the command that redlock runs.
function __redlock_complete_inner
    set -l scan (__redlock_scan)
    set -l words (string escape -- $scan[2..-1]) (commandline -ct)
    test (count $words) -eq 1; and string match -q -- '-*' "$words"; and return
    complete --do-complete=(string join -- ' ' $words)
end

# Succeeds if `redlock help` is completed.
function __redlock_is_help
    set -l words (__redlock_words)
    test "$words" = help
end

complete -c redlock -f
complete -c redlock -n __redlock_no_command -s h -l help -d 'list the subcommands'
complete -c redlock -n __redlock_no_command -s V -l version -d 'print the versions'
@commands@
complete -c redlock -n __redlock_no_command -x -a help -d 'print the help of a subcommand'
complete -c redlock -n __redlock_is_inner -x -a '(__redlock_complete_inner)'
@options@
