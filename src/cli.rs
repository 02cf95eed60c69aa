//! Every flag, no logic.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  gpucheck                                   what is here, what is wrong, how to mend it
  gpucheck --format json | jq .findings      the same for programs
  gpucheck --format markdown                 the same for a ticket
  gpucheck --require cuda --require gpus=8   exit 1 unless CUDA is ready on 8 GPUs
  gpucheck --fail-on warning -q              for health checks: the exit status and what is wrong
  gpucheck --only 'nvidia-*' --skip nouveau-bound
  sudo gpucheck --user ollama                may the service's user use the GPUs?
  gpucheck advise                            what to install, and what the GPU is good for
  gpucheck fit llama3.1:8b                   does this model fit, and how fast can it be?
  gpucheck explain nouveau-bound             what a check finds, and why it matters
  gpucheck tables cuda 12.8                  what it needs, and what supports it
  gpucheck capture --output machine.txt      write down what was seen ...
  gpucheck --replay machine.txt              ... and judge it anywhere

Exit status:
  0  nothing at or above --fail-on, and every --require is met; having no GPU is no error
  1  something is, or a --require is not met
  2  gpucheck itself could not do its work";

const ADVISE_EXAMPLES: &str = "\
Examples:
  gpucheck advise                            what to install, and what the GPU is good for
  gpucheck advise --for cuda                 NVIDIA's driver and toolkits alone
  gpucheck advise --for pytorch              with the wheel that fits driver and GPU
  gpucheck advise --replay machine.txt       the same for a machine that was captured

Exit status:
  0  advice was given; having no GPU is no error
  2  gpucheck could not look";

const FIT_EXAMPLES: &str = "\
Examples:
  gpucheck fit llama3.1:8b                     a model of `gpucheck tables model`
  gpucheck fit Qwen2.5-32B --quant Q4_K_M --context 16k
  gpucheck fit ./model-Q4_K_M.gguf             a file, or a folder of files: their size counts
  gpucheck fit 70B --quant 4.25                any model of that size, at so many bits
  gpucheck fit FLUX.1-dev --replay machine.txt  on a machine that was captured

Exit status:
  0  it fits on a GPU here, if only just
  1  it does not, or nobody can tell
  2  gpucheck could not look, or does not know the model";

const TABLES_EXAMPLES: &str = "\
Examples:
  gpucheck tables cuda 12.8
  gpucheck tables driver 580.95.05
  gpucheck tables rocm 7.2
  gpucheck tables gpu RTX 5090
  gpucheck tables gfx1151
  gpucheck tables sm_89
  gpucheck tables xid 79
  gpucheck tables model llama3.1:8b";

/// Says which GPUs are here, how far their stack works, what is wrong, and how to mend it
///
/// Reads what the system shows of its GPUs: bus, kernel modules, device nodes, libraries, toolkits. Needs no root and no
/// network, and changes nothing. Without a command it looks at this machine and reports.
#[derive(Debug, Parser)]
#[command(
    name = "gpucheck",
    version,
    after_help = EXAMPLES,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do; without one: look and report.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of the report.
    #[command(flatten)]
    pub check: CheckArgs,
    /// When to write colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Explain a check: what it finds, why that matters, how it comes about
    Explain(ExplainArgs),
    /// List all checks
    List(ListArgs),
    /// Say what to install for a GPU without a driver, and what a GPU is good for
    ///
    /// Looks as the report does and installs nothing: a numbered plan for this distribution and release, what the next
    /// restart changes or breaks, what can ever run the card, and the figures that buyers ask for.
    #[command(after_help = ADVISE_EXAMPLES)]
    Advise(AdviseArgs),
    /// Say whether a model fits on the GPUs here, and how fast it can be at most
    ///
    /// Looks as the report does. What the model needs - weights, what is kept of its context, buffers - is held against the
    /// memory that is free on each GPU, on several together where engines split a model by layers, and in the system. All
    /// of it is an estimate, and what is not known stays unknown.
    #[command(after_help = FIT_EXAMPLES)]
    Fit(FitArgs),
    /// Say what fits with what: a CUDA toolkit, a driver, a ROCm release, a GPU, a target, an error code, a model
    ///
    /// Offline, from the built-in tables, with where and when each statement was read. Without words it lists the tables.
    #[command(after_help = TABLES_EXAMPLES)]
    Tables(TablesArgs),
    /// Write down what was seen, for `gpucheck --replay`
    ///
    /// The file is text. User and host names, serial numbers, UUIDs, addresses and tokens are replaced unless
    /// --keep-private is given; read it before you pass it on all the same.
    Capture(CaptureArgs),
    /// Write the documentation that comes from the program: checks, manual pages, completions
    Generate(GenerateArgs),
    /// Ask this machine, in a process of its own
    #[command(hide = true)]
    Probe(ProbeArgs),
}

/// How to look.
#[derive(Clone, Debug, Default, Args)]
pub struct LookArgs {
    /// Look at the system below DIR (a mounted disk, a container's root) instead of the running one
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Give a source this many seconds to answer [default: 5, and 30 for a driver's library]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Leave out what takes long: packed kernel modules, and the drivers' libraries (NVML, CUDA, ROCm SMI)
    #[arg(long)]
    pub quick: bool,
    /// Ask GPUs that sleep, too, which wakes them
    #[arg(long)]
    pub wake: bool,
    /// Judge access for this user instead of the caller
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Do not replace private values (names, serial numbers, UUIDs, addresses, tokens)
    #[arg(long)]
    pub keep_private: bool,
}

/// Flags of the report.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Form of the report
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Write the report to FILE, readable by its owner alone; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Exit with 1 for a finding of this severity or worse
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t)]
    pub fail_on: FailOn,
    /// Exit with 1 unless this is ready: cuda, rocm, level-zero, vulkan, or gpus=N for N GPUs that are
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = requirement)]
    pub require: Vec<Requirement>,
    /// Show and count only these checks; names, or patterns with * and ?
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Neither show nor count these checks; names, or patterns with * and ?
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Judge a machine that `gpucheck capture` wrote down; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    pub replay: Option<PathBuf>,
    /// How to look.
    #[command(flatten)]
    pub look: LookArgs,
    /// Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Add everything that was seen to the JSON report
    #[arg(long)]
    pub facts: bool,
    /// Show every answer of every check, and what each source took
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Show what is wrong and nothing else
    #[arg(short, long)]
    pub quiet: bool,
}

/// Form of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Terminal,
    /// For programs, see docs/report.schema.json
    Json,
    /// For a ticket: GitHub and GitLab show it as tables with folded details
    Markdown,
}

/// Form of the list of checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// For people
    #[default]
    Terminal,
    /// For programs
    Json,
}

/// From which severity on the exit status is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// What cannot work
    #[default]
    Error,
    /// Also what works badly
    Warning,
    /// Also what is good to know
    Note,
    /// Nothing
    Never,
}

/// What the user requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// This stack is ready: `cuda`, `rocm`, `level-zero`, `vulkan`.
    Stack(String),
    /// At least so many GPUs are ready for some stack.
    Gpus(usize),
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Name of the check, as the report shows it
    #[arg(value_name = "CHECK")]
    pub name: String,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Form of the list
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: ListFormat,
}

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// Narrow the advice to this
    #[arg(long = "for", value_name = "WHAT", value_enum)]
    pub purpose: Option<AdviseFor>,
    /// Form of the advice
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: ListFormat,
    /// Advise on a machine that `gpucheck capture` wrote down; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    pub replay: Option<PathBuf>,
    /// How to look.
    #[command(flatten)]
    pub look: LookArgs,
    /// Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// What advice is narrowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AdviseFor {
    /// NVIDIA's driver and toolkits
    Cuda,
    /// AMD's driver and ROCm
    Rocm,
    /// PyTorch, with what it needs below it
    Pytorch,
}

/// Arguments of `fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// A model of `gpucheck tables model`, a file or folder (.gguf, .safetensors), or a size such as 70B
    #[arg(value_name = "MODEL", required = true)]
    pub words: Vec<String>,
    /// Format of the weights: F16, BF16, FP8, Q8_0, Q4_K_M and the like, or bits per parameter [default: Q4_K_M, of images
    /// and speech F16, or what its makers publish]
    #[arg(long, visible_alias = "bits", value_name = "FORMAT")]
    pub quant: Option<String>,
    /// Tokens of context to reckon with, as 8192 or 8k [default: 8192, or as many as the model was made for]
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    pub context: Option<u32>,
    /// Form of the answer
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: ListFormat,
    /// Judge a machine that `gpucheck capture` wrote down; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    pub replay: Option<PathBuf>,
    /// How to look.
    #[command(flatten)]
    pub look: LookArgs,
    /// Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Show all notes, and what could not be told
    #[arg(short, long)]
    pub verbose: bool,
}

/// Arguments of `tables`.
#[derive(Debug, Args)]
pub struct TablesArgs {
    /// What to look up: `cuda`, `driver`, `rocm`, `gpu`, `xid` or `model` with a name; or a target
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// Form of the answer
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: ListFormat,
    /// Take tables (*.toml, *.csv) from DIR over the built-in ones of the same name
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// Arguments of `capture`.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// Write to FILE, readable by its owner alone; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// How to look.
    #[command(flatten)]
    pub look: LookArgs,
}

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Folder to write into
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Arguments of a worker.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// Which worker
    #[command(subcommand)]
    pub worker: Worker,
}

/// Workers.
#[derive(Debug, Subcommand)]
pub enum Worker {
    /// What shows what is here: files
    Files(AskArgs),
    /// What matters where a GPU is: packages, services, the kernel log
    System(AskArgs),
    /// NVML, NVIDIA's management library
    Nvml(LibraryArgs),
    /// The CUDA driver library: its version
    Cuda(LibraryArgs),
    /// ROCm SMI, AMD's management library
    #[command(name = "rocm_smi")]
    RocmSmi(LibraryArgs),
}

/// How a worker asks.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The source to begin with
    #[arg(long)]
    pub from: Option<String>,
    /// Write down every answer
    #[arg(long)]
    pub record: bool,
    /// What placeholders of private values are made from, the same for all workers of a run
    #[arg(long, default_value_t)]
    pub salt: u64,
    /// How to look.
    #[command(flatten)]
    pub look: LookArgs,
}

/// How a worker asks a library.
#[derive(Debug, Args)]
pub struct LibraryArgs {
    /// The library file to load
    #[arg(long, value_name = "PATH")]
    pub library: String,
    /// How to ask.
    #[command(flatten)]
    pub ask: AskArgs,
}

/// Reads the command line. An error may as well be the text of `--help`; its `exit` does what is right for it.
///
/// # Errors
/// The arguments make no sense, or ask for help or the version.
pub fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command().color(colour_asked_for(&arguments));
    let matches = command.try_get_matches_from_mut(arguments)?;
    // Flags of the report mean nothing to a command. `--color` does, before and after its name.
    let stray = matches
        .ids()
        .filter(|id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine))
        .find(|id| !matches!(id.as_str(), "color" | "CheckArgs" | "LookArgs"));
    if let (Some(name), Some(flag)) = (matches.subcommand_name(), stray) {
        let flag = flag.as_str().replace('_', "-");
        let what =
            format!("`--{flag}` before `{name}` has no meaning; see `gpucheck {name} --help`");
        return Err(command.error(ErrorKind::ArgumentConflict, what));
    }
    Cli::from_arg_matches(&matches)
}

/// What `--color` says, before the command line is understood: help and errors are coloured, too.
fn colour_asked_for(arguments: &[OsString]) -> ColorChoice {
    let texts: Vec<&str> = arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .collect();
    let value = texts.iter().enumerate().find_map(|(at, text)| {
        let rest = text.strip_prefix("--color")?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None if rest.is_empty() => texts.get(at + 1).copied(),
            None => None,
        }
    });
    value
        .and_then(|value| ColorChoice::from_str(value, false).ok())
        .unwrap_or_default()
}

/// Stacks that `--require` takes.
const STACKS: [&str; 4] = ["cuda", "rocm", "level-zero", "vulkan"];

fn requirement(text: &str) -> Result<Requirement, String> {
    if STACKS.contains(&text) {
        return Ok(Requirement::Stack(text.to_owned()));
    }
    match text.strip_prefix("gpus=").map(str::parse) {
        Some(Ok(count)) if count > 0 => Ok(Requirement::Gpus(count)),
        Some(_) => Err("the number in gpus=N must be 1 or more".to_owned()),
        None => Err(format!("one of {} or gpus=N", STACKS.join(", "))),
    }
}

fn tokens(text: &str) -> Result<u32, String> {
    let lower = text.to_lowercase();
    let (digits, unit) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1024),
        None => (lower.as_str(), 1),
    };
    let number: Option<u32> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .filter(|tokens| (1..=100_000_000).contains(tokens))
        .ok_or_else(|| "a number of tokens, as 8192 or 8k".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds| (0.01..=3600.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a number of seconds from 0.01 to 3600".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        super::parse(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn flags_of_the_report_stand_with_no_command() {
        let cli = parse("gpucheck --require cuda,gpus=2 --only a,b --only c").expect("right");
        assert_eq!(cli.check.only, ["a", "b", "c"]);
        assert_eq!(cli.check.require.len(), 2);
        for line in [
            "gpucheck --quick list",
            "gpucheck --format json list",
            "gpucheck --only x capture",
            "gpucheck -v explain x",
            "gpucheck --root / --replay x",
            "gpucheck -q -v",
            "gpucheck surprise",
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
        }
        for line in [
            "gpucheck --color never list",
            "gpucheck list --color=never",
            "gpucheck capture --quick --root /",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn colour_is_known_before_the_rest() {
        let asked = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            colour_asked_for(&arguments)
        };
        assert_eq!(
            asked("gpucheck --nonsense --color never"),
            ColorChoice::Never
        );
        assert_eq!(asked("gpucheck --color=always"), ColorChoice::Always);
        assert_eq!(asked("gpucheck --color"), ColorChoice::Auto);
        assert_eq!(asked("gpucheck --colorful=always"), ColorChoice::Auto);
    }

    #[test]
    fn requirements() {
        assert_eq!(requirement("cuda"), Ok(Requirement::Stack("cuda".into())));
        assert_eq!(requirement("gpus=8"), Ok(Requirement::Gpus(8)));
        for wrong in [
            "", "CUDA", "opencl", "gpus", "gpus=", "gpus=0", "gpus=-1", "gpus=x",
        ] {
            assert!(requirement(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn time_limits() {
        assert_eq!(seconds("30"), Ok(Duration::from_secs(30)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "NaN", "inf", "1e9", "5s"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
