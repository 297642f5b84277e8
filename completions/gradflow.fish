# SPDX-License-Identifier: BSD-3-Clause
# The words that fish offers for gradflow's commands: those that the command itself prints
# by its hidden option --completion (lib/cli/command.c).
function __gradflow
    set -l before (commandline -opc)
    set -l token (commandline -ct)
    set -l last $before[-1]
    set -l front ''
    if string match -q -- '--*=*' $token
        set last (string split -m 1 = -- $token)[1]
        set front $last=
        set token (string split -m 1 = -- $token)[2]
    end
    set -l here ''
    set -l found ''
    set -l files ''
    set -l names
    set -l operands
    for line in ($before[1] --completion 2> /dev/null)
        set -l f (string split \t -- $line)
        switch $f[1]
            case command
                test -z "$f[3]"; or set files path
            case name
                set -a operands $f[2]
            case option
                set -a names --$f[2]\t$f[7]
                set here ''
                if test -n "$f[4]"; and contains -- $last --$f[2] -$f[3]
                    set here 1
                    set found 1
                    set files ''
                    test "$f[4]" = LIST; and string match -q '*,*' -- $token
                    and set front $front(string replace -r ',[^,]*$' ',' -- $token)
                    switch $f[6]
                        case folders
                            set files directories
                        case files
                            set files path
                    end
                end
            case key
                test -n "$here"; and string match -q "*:*" -- $token
                and contains -- "$f[2]" '' (string split -m 1 : -- $token)[1]
                and echo $front(string replace -r '[^:,]*$' '' -- $token)$f[3]=\t$f[4]
            case word
                test -z "$here"; or echo $front$f[2]\t$f[3]
        end
    end
    if test -z "$found"; and string match -q -- '-*' $token; or test -z "$found$files"
        printf '%s\n' $names
    else if test -n "$files"
        test -n "$found"; or printf '%s\n' $operands
        __fish_complete_$files $token | string replace -r '^' -- "$front"
    end
end
for command in gf-allreduce gf-plan gf-profile gf-report gf-sim gf-topo gf-train
    complete -c $command -e
    complete -c $command -f -a '(__gradflow)'
end
