# SPDX-License-Identifier: BSD-3-Clause
"""completions.py FOLDER COMMAND...: writes shells' completions of the commands' options.

The files for bash, zsh and fish are made of what a command's hidden option --completion
prints (lib/cli/complete.h). `make completions` writes completions/ with them.
"""
import os
import re
import subprocess
import sys

SHARE = os.path.join(os.path.dirname(__file__), "..")
HEAD = "# SPDX-License-Identifier: BSD-3-Clause\n# Written by make completions.\n"


class Option:
    """What a shell offers for an option's argument: words, a word with help, paths."""

    def __init__(self, name, letter, arg, repeats, folder, text):
        self.name, self.letter, self.arg, self.help = name, letter, arg, text
        self.repeats = bool(repeats)
        self.words = {}
        self.folder = folder
        self.list = arg == "LIST"
        self.paths = ("folders" if arg.endswith("DIR")
                      else "files" if arg.endswith("FILE") or folder else "")

    def names(self):
        return [f"--{self.name}"] + [f"-{self.letter}"] * bool(self.letter)


class Command:
    def __init__(self, path):
        lines = subprocess.run([path, "--completion"], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        self.options = []
        self.rules = [("help usage version", "*")]
        for kind, *fields in (line.split("\t") for line in lines):
            if kind == "command":
                self.name, self.arguments = fields
            elif kind == "option":
                self.options.append(Option(*fields))
            elif kind == "word":
                self.options[-1].words.setdefault(*fields)
            else:
                self.rules.append(fields)
        for option in self.options:
            if option.folder:
                for file in sorted(os.listdir(os.path.join(SHARE, option.folder))):
                    option.words.setdefault(os.path.splitext(file)[0], "")
            if not option.arg:
                option.words = {}


def quote(text):
    """One word of sh and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def escape(text, special):
    return re.sub(f"[{re.escape(special)}]", r"\\\g<0>", text)


# --- bash -------------------------------------------------------------------

def lines(words, column, between=" ", broken="\n\t\t"):
    """Words on lines of at most 80 columns, the first of which begins at a column."""
    text = ""
    for word in words:
        length = len(word) + len(between)
        if text and column + length > 80:
            text += broken
            column = 16
        elif text:
            text += between
        text += word
        column += length
    return text


def patterns(options):
    return "\t" + lines([n for o in options for n in o.names()], 8, " | ", " | \\\n\t\t")


def bash(c):
    cases = ""
    for o in c.options:
        if o.words:
            paths = {"files": "paths=-f ", "folders": "paths=-d "}.get(o.paths, "")
            cases += (f"{patterns([o])}) {paths}{'list=1 ' * o.list}"
                      f"words='{lines(o.words, 40)}' ;;\n")
    for paths, action in (("files", "paths=-f"), ("folders", "paths=-d"), ("", "return")):
        wordless = [o for o in c.options if o.arg and not o.words and o.paths == paths]
        if wordless:
            cases += f"{patterns(wordless)}) {action} ;;\n"
    names = f"words='{lines([f'--{o.name}' for o in c.options], 24)}' ;;\n"
    other = (f"\t\tcase $cur in\n\t\t-*) {names}\t\t*) paths=-f ;;\n\t\tesac ;;\n"
             if c.arguments else f"\t\t{names}")
    function = "_" + c.name.replace("-", "_")
    return f"""{HEAD}{function}() {{
	local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}
	local words='' paths='' list='' before=''
	# an option, = and its word are three words
	if [[ $cur == = ]]; then cur=''
	elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
	case $prev in
{cases}	*)
{other}	esac
	if [[ $list && $cur == *,* ]]; then before=${{cur%,*}}, cur=${{cur##*,}}; fi
	mapfile -t COMPREPLY < <(compgen $paths -P "$before" -W "$words" -- "$cur")
	[[ -z $paths ]] || compopt -o filenames 2> /dev/null
}}
complete -F {function} {c.name}
"""


# --- zsh --------------------------------------------------------------------

def zsh_words(o):
    """`a b c` or, with their help, `a\\:"help of a" b c`, as _arguments takes them."""
    helped = any(o.words.values())
    words = " ".join(escape(word, ":\\" if helped else ":") +
                     (f'\\:"{escape(text, chr(34) + ":$`" + chr(92))}"' if text else "")
                     for word, text in o.words.items())
    return f"(({words}))" if helped else f"({words})"


def zsh_values(o):
    """Words for _values, where brackets hold the help."""
    text = ""
    for word, about in o.words.items():
        # a colon that _arguments leaves to _values, which leaves it
        text += ' "' + word.replace(":", "\\\\\\:")
        text += f"[{escape(about, '[]:$`' + chr(34) + chr(92))}]" if about else ""
        text += '"'
    return text


def zsh_argument(o):
    """":name:action" of an option's argument."""
    paths = {"files": "_files", "folders": "_files -/"}.get(o.paths, "")
    if o.words and o.list:
        action = f"_values -s , word{zsh_values(o)}"
    elif o.words and o.paths:
        action = f'{{_alternative "words\\:word\\:{zsh_words(o)}" "files\\:file\\:{paths}"}}'
    else:
        action = zsh_words(o) if o.words else paths
    return f":{escape(o.arg.lower(), ':')}:{action}"


def zsh_excluded(c, o):
    """"(-o --option --other)": what is not offered once the option is there."""
    names = []
    for options, without in c.rules[1:] + c.rules[:1]:
        if o.name in options.split():
            names += (["-", "*"] if without == "*" else
                      [f"--{name}" for name in without.split() if name != o.name])
    if o.letter and not o.repeats:
        names += reversed(o.names())
    return f"({' '.join(names)})" if names else ""


def zsh(c):
    text = f"#compdef {c.name}\n{HEAD}_arguments"
    for o in c.options:
        before = zsh_excluded(c, o) + "*" * o.repeats
        after = f"[{escape(o.help, '[]:' + chr(92))}]" + (zsh_argument(o) if o.arg else "")
        text += " \\\n\t"
        if o.letter:
            text += quote(before) if before else ""
            text += (f"{{-{o.letter}+,--{o.name}=}}" if o.arg else f"{{-{o.letter},--{o.name}}}")
            text += quote(after)
        else:
            text += quote(f"{before}--{o.name}{'=' if o.arg else ''}{after}")
    return text + (" \\\n\t'*:file:_files'" if c.arguments else "") + "\n"


# --- fish -------------------------------------------------------------------

def fish_quote(text):
    """In single quotes fish knows no escapes but these."""
    return "'" + escape(text, "'\\") + "'"


def fish_offer(o):
    """The one argument of -a: word<tab>"help" for each, as fish is to expand them."""
    offer = [word + (f'\\t"{escape(text, chr(34) + "$" + chr(92))}"' if text else "")
             for word, text in o.words.items()]
    if o.list and o.words:
        words = "printf '%s\\n' " + " ".join(offer)
        offer = [f"(__fish_complete_list , {fish_quote(words)})"]
    if o.paths == "folders":
        offer.append("(__fish_complete_directories)")
    return " -a " + fish_quote(" ".join(offer)) if offer else ""


def fish(c):
    text = HEAD + ("" if c.arguments else f"complete -c {c.name} -f\n")
    for o in c.options:
        letter = f" -s {o.letter}" if o.letter else ""
        kind = " -r -F" if o.paths == "files" else " -x" if o.arg else ""
        text += (f"complete -c {c.name}{letter} -l {o.name}{kind}{fish_offer(o)} "
                 f"-d {fish_quote(o.help)}\n")
    return text


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: completions.py FOLDER COMMAND...")
    for path in sys.argv[2:]:
        c = Command(path)
        for file, text in ((f"{c.name}.bash", bash(c)), (f"_{c.name}", zsh(c)),
                           (f"{c.name}.fish", fish(c))):
            with open(os.path.join(sys.argv[1], file), "w", encoding="utf-8") as f:
                f.write(text)


main()
