# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_gpucheck_global_optspecs
    string join \n format= o/output= fail-on= require= only= skip= replay= root= timeout= quick wake user= keep-private data= facts v/verbose q/quiet color= h/help V/version
end

function __fish_gpucheck_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_gpucheck_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_gpucheck_using_subcommand
    set -l cmd (__fish_gpucheck_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c gpucheck -n "__fish_gpucheck_needs_command" -l format -d 'Form of the report' -r -f -a "terminal\t'For people'
json\t'For programs, see docs/report.schema.json'
markdown\t'For a ticket: GitHub and GitLab show it as tables with folded details'"
complete -c gpucheck -n "__fish_gpucheck_needs_command" -s o -l output -d 'Write the report to FILE, readable by its owner alone; `-` is standard output' -r -F
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l fail-on -d 'Exit with 1 for a finding of this severity or worse' -r -f -a "error\t'What cannot work'
warning\t'Also what works badly'
note\t'Also what is good to know'
never\t'Nothing'"
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l require -d 'Exit with 1 unless this is ready: cuda, rocm, level-zero, vulkan, or gpus=N for N GPUs that are' -r
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l only -d 'Show and count only these checks; names, or patterns with * and ?' -r
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l skip -d 'Neither show nor count these checks; names, or patterns with * and ?' -r
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l replay -d 'Judge a machine that `gpucheck capture` wrote down; `-` is standard input' -r -F
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l root -d 'Look at the system below DIR (a mounted disk, a container\'s root) instead of the running one' -r -F
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l timeout -d 'Give a source this many seconds to answer [default: 5, and 30 for a driver\'s library]' -r
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l user -d 'Judge access for this user instead of the caller' -r
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l data -d 'Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name' -r -F
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l color -d 'When to write colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l quick -d 'Leave out what takes long: packed kernel modules, and the drivers\' libraries (NVML, CUDA, ROCm SMI)'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l wake -d 'Ask GPUs that sleep, too, which wakes them'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l keep-private -d 'Do not replace private values (names, serial numbers, UUIDs, addresses, tokens)'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -l facts -d 'Add everything that was seen to the JSON report'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -s v -l verbose -d 'Show every answer of every check, and what each source took'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -s q -l quiet -d 'Show what is wrong and nothing else'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -s V -l version -d 'Print version'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -f -a "explain" -d 'Explain a check: what it finds, why that matters, how it comes about'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -f -a "list" -d 'List all checks'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -f -a "advise" -d 'Say what to install for a GPU without a driver, and what a GPU is good for'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -f -a "fit" -d 'Say whether a model fits on the GPUs here, and how fast it can be at most'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -f -a "tables" -d 'Say what fits with what: a CUDA toolkit, a driver, a ROCm release, a GPU, a target, an error code, a model'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -f -a "capture" -d 'Write down what was seen, for `gpucheck --replay`'
complete -c gpucheck -n "__fish_gpucheck_needs_command" -f -a "generate" -d 'Write the documentation that comes from the program: checks, manual pages, completions'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand explain" -l color -d 'When to write colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand explain" -s h -l help -d 'Print help'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand list" -l format -d 'Form of the list' -r -f -a "terminal\t'For people'
json\t'For programs'"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand list" -l color -d 'When to write colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l for -d 'Narrow the advice to this' -r -f -a "cuda\t'NVIDIA\'s driver and toolkits'
rocm\t'AMD\'s driver and ROCm'
pytorch\t'PyTorch, with what it needs below it'"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l format -d 'Form of the advice' -r -f -a "terminal\t'For people'
json\t'For programs'"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l replay -d 'Advise on a machine that `gpucheck capture` wrote down; `-` is standard input' -r -F
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l root -d 'Look at the system below DIR (a mounted disk, a container\'s root) instead of the running one' -r -F
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l timeout -d 'Give a source this many seconds to answer [default: 5, and 30 for a driver\'s library]' -r
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l user -d 'Judge access for this user instead of the caller' -r
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l data -d 'Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name' -r -F
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l color -d 'When to write colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l quick -d 'Leave out what takes long: packed kernel modules, and the drivers\' libraries (NVML, CUDA, ROCm SMI)'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l wake -d 'Ask GPUs that sleep, too, which wakes them'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -l keep-private -d 'Do not replace private values (names, serial numbers, UUIDs, addresses, tokens)'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand advise" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l quant -l bits -d 'Format of the weights: F16, BF16, FP8, Q8_0, Q4_K_M and the like, or bits per parameter [default: Q4_K_M, of images and speech F16, or what its makers publish]' -r
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l context -d 'Tokens of context to reckon with, as 8192 or 8k [default: 8192, or as many as the model was made for]' -r
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l format -d 'Form of the answer' -r -f -a "terminal\t'For people'
json\t'For programs'"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l replay -d 'Judge a machine that `gpucheck capture` wrote down; `-` is standard input' -r -F
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l root -d 'Look at the system below DIR (a mounted disk, a container\'s root) instead of the running one' -r -F
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l timeout -d 'Give a source this many seconds to answer [default: 5, and 30 for a driver\'s library]' -r
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l user -d 'Judge access for this user instead of the caller' -r
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l data -d 'Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name' -r -F
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l color -d 'When to write colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l quick -d 'Leave out what takes long: packed kernel modules, and the drivers\' libraries (NVML, CUDA, ROCm SMI)'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l wake -d 'Ask GPUs that sleep, too, which wakes them'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -l keep-private -d 'Do not replace private values (names, serial numbers, UUIDs, addresses, tokens)'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -s v -l verbose -d 'Show all notes, and what could not be told'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand fit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand tables" -l format -d 'Form of the answer' -r -f -a "terminal\t'For people'
json\t'For programs'"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand tables" -l data -d 'Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name' -r -F
complete -c gpucheck -n "__fish_gpucheck_using_subcommand tables" -l color -d 'When to write colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand tables" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand capture" -s o -l output -d 'Write to FILE, readable by its owner alone; `-` is standard output' -r -F
complete -c gpucheck -n "__fish_gpucheck_using_subcommand capture" -l root -d 'Look at the system below DIR (a mounted disk, a container\'s root) instead of the running one' -r -F
complete -c gpucheck -n "__fish_gpucheck_using_subcommand capture" -l timeout -d 'Give a source this many seconds to answer [default: 5, and 30 for a driver\'s library]' -r
complete -c gpucheck -n "__fish_gpucheck_using_subcommand capture" -l user -d 'Judge access for this user instead of the caller' -r
complete -c gpucheck -n "__fish_gpucheck_using_subcommand capture" -l color -d 'When to write colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand capture" -l quick -d 'Leave out what takes long: packed kernel modules, and the drivers\' libraries (NVML, CUDA, ROCm SMI)'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand capture" -l wake -d 'Ask GPUs that sleep, too, which wakes them'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand capture" -l keep-private -d 'Do not replace private values (names, serial numbers, UUIDs, addresses, tokens)'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand capture" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gpucheck -n "__fish_gpucheck_using_subcommand generate" -l color -d 'When to write colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c gpucheck -n "__fish_gpucheck_using_subcommand generate" -s h -l help -d 'Print help'
