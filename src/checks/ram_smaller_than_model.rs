//! The model that the user names does not pass through system memory.

use crate::check::Verdict;
use crate::finding::Finding;
use crate::fit::{self, gib};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Environment, View};

crate::check! {
    /// The weights of the model that was named are larger than the system memory that is free, with swap.
    ///
    /// ## Why it matters
    /// A checkpoint passes through system memory on its way to the GPU; where there is too little of it the kernel kills the
    /// program, mostly without a word of the program itself. What no GPU holds stays in system memory for good.
    ///
    /// ## How it comes about
    /// The GPU has more memory than the machine, other programs hold it, or WSL gives Linux a part only. Engines that map a GGUF
    /// file (llama.cpp, Ollama) need no room for what a GPU holds, so of those only the rest counts here.
    ///
    /// ## How to confirm
    /// `free -g` under `available`, and `dmesg | grep -i 'out of memory'` after a program was killed.
    "ram-smaller-than-model", Capability, Warning, each Environment, run
}

const MEMINFO: &str = "/proc/meminfo";

fn run(environment: &Environment, view: &View, _: &Tables) -> Verdict {
    let model = view.model.as_ref();
    let Some(model) = model.filter(|_| view.is_model(&environment.key)) else {
        return Verdict::NotHere;
    };
    let Some(fit) = fit::fit(view) else {
        return Verdict::NotHere;
    };
    let memory = fit.system_memory;
    let needed = gib(memory.needed_bytes);
    match memory.enough {
        Some(true) if memory.needed_bytes <= 0.0 => {
            Verdict::fine("engines map a file of this format, and a GPU holds all of it")
        }
        Some(true) => Verdict::fine(format!(
            "{needed} pass through system memory, which is free"
        )),
        None => match memory.unknown {
            Some(unknown) => Verdict::cannot_tell(unknown.why, unknown.would_tell),
            None => Verdict::NotHere,
        },
        Some(false) if !model.may_accuse => Verdict::cannot_tell(
            "how large it is, is from memory alone",
            "the size of its files: `gpucheck fit FILE`",
        ),
        Some(false) => {
            let number = |bytes: Option<u64>| gib(bytes.unwrap_or_default() as f64);
            let (available, swap) = (number(memory.available_bytes), number(memory.swap_bytes));
            let finding = Finding::new(format!(
                "{needed} of {} must pass through system memory, and {available} is free",
                model.name
            ))
            .saw(
                MEMINFO,
                format!("MemAvailable {available}, SwapFree {swap}"),
            )
            .why("The kernel kills the program that loads it, or nearly all of it is read from disk again and again")
            .fix(FixCall::new("more-system-memory"));
            // What loads it may take it piece by piece.
            finding.likely().into()
        }
    }
}
