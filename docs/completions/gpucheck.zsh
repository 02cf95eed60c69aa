#compdef gpucheck

autoload -U is-at-least

_gpucheck() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'--format=[Form of the report]:FORMAT:((terminal\:"For people"
json\:"For programs, see docs/report.schema.json"
markdown\:"For a ticket\: GitHub and GitLab show it as tables with folded details"))' \
'-o+[Write the report to FILE, readable by its owner alone; \`-\` is standard output]:FILE:_files' \
'--output=[Write the report to FILE, readable by its owner alone; \`-\` is standard output]:FILE:_files' \
'--fail-on=[Exit with 1 for a finding of this severity or worse]:SEVERITY:((error\:"What cannot work"
warning\:"Also what works badly"
note\:"Also what is good to know"
never\:"Nothing"))' \
'*--require=[Exit with 1 unless this is ready\: cuda, rocm, level-zero, vulkan, or gpus=N for N GPUs that are]:WHAT:_default' \
'*--only=[Show and count only these checks; names, or patterns with * and ?]:CHECK:_default' \
'*--skip=[Neither show nor count these checks; names, or patterns with * and ?]:CHECK:_default' \
'(--root)--replay=[Judge a machine that \`gpucheck capture\` wrote down; \`-\` is standard input]:FILE:_files' \
'--root=[Look at the system below DIR (a mounted disk, a container'\''s root) instead of the running one]:DIR:_files' \
'--timeout=[Give a source this many seconds to answer \[default\: 5, and 30 for a driver'\''s library\]]:SECONDS:_default' \
'--user=[Judge access for this user instead of the caller]:NAME:_default' \
'--data=[Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name]:DIR:_files' \
'--color=[When to write colours]:WHEN:(auto always never)' \
'--quick[Leave out what takes long\: packed kernel modules, and the drivers'\'' libraries (NVML, CUDA, ROCm SMI)]' \
'--wake[Ask GPUs that sleep, too, which wakes them]' \
'--keep-private[Do not replace private values (names, serial numbers, UUIDs, addresses, tokens)]' \
'--facts[Add everything that was seen to the JSON report]' \
'(-q --quiet)-v[Show every answer of every check, and what each source took]' \
'(-q --quiet)--verbose[Show every answer of every check, and what each source took]' \
'-q[Show what is wrong and nothing else]' \
'--quiet[Show what is wrong and nothing else]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_gpucheck_commands" \
"*::: :->gpucheck" \
&& ret=0
    case $state in
    (gpucheck)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:gpucheck-command-$line[1]:"
        case $line[1] in
            (explain)
_arguments "${_arguments_options[@]}" : \
'--color=[When to write colours]:WHEN:(auto always never)' \
'-h[Print help]' \
'--help[Print help]' \
':name -- Name of the check, as the report shows it:_default' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--format=[Form of the list]:FORMAT:((terminal\:"For people"
json\:"For programs"))' \
'--color=[When to write colours]:WHEN:(auto always never)' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(advise)
_arguments "${_arguments_options[@]}" : \
'--for=[Narrow the advice to this]:WHAT:((cuda\:"NVIDIA'\''s driver and toolkits"
rocm\:"AMD'\''s driver and ROCm"
pytorch\:"PyTorch, with what it needs below it"))' \
'--format=[Form of the advice]:FORMAT:((terminal\:"For people"
json\:"For programs"))' \
'(--root)--replay=[Advise on a machine that \`gpucheck capture\` wrote down; \`-\` is standard input]:FILE:_files' \
'--root=[Look at the system below DIR (a mounted disk, a container'\''s root) instead of the running one]:DIR:_files' \
'--timeout=[Give a source this many seconds to answer \[default\: 5, and 30 for a driver'\''s library\]]:SECONDS:_default' \
'--user=[Judge access for this user instead of the caller]:NAME:_default' \
'--data=[Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name]:DIR:_files' \
'--color=[When to write colours]:WHEN:(auto always never)' \
'--quick[Leave out what takes long\: packed kernel modules, and the drivers'\'' libraries (NVML, CUDA, ROCm SMI)]' \
'--wake[Ask GPUs that sleep, too, which wakes them]' \
'--keep-private[Do not replace private values (names, serial numbers, UUIDs, addresses, tokens)]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(fit)
_arguments "${_arguments_options[@]}" : \
'--quant=[Format of the weights\: F16, BF16, FP8, Q8_0, Q4_K_M and the like, or bits per parameter \[default\: Q4_K_M, of images and speech F16, or what its makers publish\]]:FORMAT:_default' \
'--bits=[Format of the weights\: F16, BF16, FP8, Q8_0, Q4_K_M and the like, or bits per parameter \[default\: Q4_K_M, of images and speech F16, or what its makers publish\]]:FORMAT:_default' \
'--context=[Tokens of context to reckon with, as 8192 or 8k \[default\: 8192, or as many as the model was made for\]]:TOKENS:_default' \
'--format=[Form of the answer]:FORMAT:((terminal\:"For people"
json\:"For programs"))' \
'(--root)--replay=[Judge a machine that \`gpucheck capture\` wrote down; \`-\` is standard input]:FILE:_files' \
'--root=[Look at the system below DIR (a mounted disk, a container'\''s root) instead of the running one]:DIR:_files' \
'--timeout=[Give a source this many seconds to answer \[default\: 5, and 30 for a driver'\''s library\]]:SECONDS:_default' \
'--user=[Judge access for this user instead of the caller]:NAME:_default' \
'--data=[Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name]:DIR:_files' \
'--color=[When to write colours]:WHEN:(auto always never)' \
'--quick[Leave out what takes long\: packed kernel modules, and the drivers'\'' libraries (NVML, CUDA, ROCm SMI)]' \
'--wake[Ask GPUs that sleep, too, which wakes them]' \
'--keep-private[Do not replace private values (names, serial numbers, UUIDs, addresses, tokens)]' \
'-v[Show all notes, and what could not be told]' \
'--verbose[Show all notes, and what could not be told]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::words -- A model of `gpucheck tables model`, a file or folder (.gguf, .safetensors), or a size such as 70B:_default' \
&& ret=0
;;
(tables)
_arguments "${_arguments_options[@]}" : \
'--format=[Form of the answer]:FORMAT:((terminal\:"For people"
json\:"For programs"))' \
'--data=[Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name]:DIR:_files' \
'--color=[When to write colours]:WHEN:(auto always never)' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::words -- What to look up\: `cuda`, `driver`, `rocm`, `gpu`, `xid` or `model` with a name; or a target:_default' \
&& ret=0
;;
(capture)
_arguments "${_arguments_options[@]}" : \
'-o+[Write to FILE, readable by its owner alone; \`-\` is standard output]:FILE:_files' \
'--output=[Write to FILE, readable by its owner alone; \`-\` is standard output]:FILE:_files' \
'--root=[Look at the system below DIR (a mounted disk, a container'\''s root) instead of the running one]:DIR:_files' \
'--timeout=[Give a source this many seconds to answer \[default\: 5, and 30 for a driver'\''s library\]]:SECONDS:_default' \
'--user=[Judge access for this user instead of the caller]:NAME:_default' \
'--color=[When to write colours]:WHEN:(auto always never)' \
'--quick[Leave out what takes long\: packed kernel modules, and the drivers'\'' libraries (NVML, CUDA, ROCm SMI)]' \
'--wake[Ask GPUs that sleep, too, which wakes them]' \
'--keep-private[Do not replace private values (names, serial numbers, UUIDs, addresses, tokens)]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(generate)
_arguments "${_arguments_options[@]}" : \
'--color=[When to write colours]:WHEN:(auto always never)' \
'-h[Print help]' \
'--help[Print help]' \
':folder -- Folder to write into:_files' \
&& ret=0
;;
        esac
    ;;
esac
}

(( $+functions[_gpucheck_commands] )) ||
_gpucheck_commands() {
    local commands; commands=(
'explain:Explain a check\: what it finds, why that matters, how it comes about' \
'list:List all checks' \
'advise:Say what to install for a GPU without a driver, and what a GPU is good for' \
'fit:Say whether a model fits on the GPUs here, and how fast it can be at most' \
'tables:Say what fits with what\: a CUDA toolkit, a driver, a ROCm release, a GPU, a target, an error code, a model' \
'capture:Write down what was seen, for \`gpucheck --replay\`' \
'generate:Write the documentation that comes from the program\: checks, manual pages, completions' \
    )
    _describe -t commands 'gpucheck commands' commands "$@"
}
(( $+functions[_gpucheck__subcmd__advise_commands] )) ||
_gpucheck__subcmd__advise_commands() {
    local commands; commands=()
    _describe -t commands 'gpucheck advise commands' commands "$@"
}
(( $+functions[_gpucheck__subcmd__capture_commands] )) ||
_gpucheck__subcmd__capture_commands() {
    local commands; commands=()
    _describe -t commands 'gpucheck capture commands' commands "$@"
}
(( $+functions[_gpucheck__subcmd__explain_commands] )) ||
_gpucheck__subcmd__explain_commands() {
    local commands; commands=()
    _describe -t commands 'gpucheck explain commands' commands "$@"
}
(( $+functions[_gpucheck__subcmd__fit_commands] )) ||
_gpucheck__subcmd__fit_commands() {
    local commands; commands=()
    _describe -t commands 'gpucheck fit commands' commands "$@"
}
(( $+functions[_gpucheck__subcmd__generate_commands] )) ||
_gpucheck__subcmd__generate_commands() {
    local commands; commands=()
    _describe -t commands 'gpucheck generate commands' commands "$@"
}
(( $+functions[_gpucheck__subcmd__list_commands] )) ||
_gpucheck__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'gpucheck list commands' commands "$@"
}
(( $+functions[_gpucheck__subcmd__tables_commands] )) ||
_gpucheck__subcmd__tables_commands() {
    local commands; commands=()
    _describe -t commands 'gpucheck tables commands' commands "$@"
}

if [ "$funcstack[1]" = "_gpucheck" ]; then
    _gpucheck "$@"
else
    compdef _gpucheck gpucheck
fi
