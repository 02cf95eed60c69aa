//! The kernel log: lines of GPU drivers, of the PCI bus, of the module loader and of the memory killer. No other line is kept.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kernel log of this boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct KernelLog {
    /// Which source worked: `kmsg`, `journal`, `file NAME`.
    pub source: String,
    /// Other sources that were asked and refused, by path, with why (`EPERM`).
    pub tried: BTreeMap<String, String>,
    /// Every line that was wanted is here, from the start of this boot on: none was overwritten, lost or left out.
    pub from_boot: bool,
    /// The lines in order. The kernel's banner (`Linux version ...`) is among them where the source holds it.
    pub lines: Vec<LogLine>,
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LogLine {
    /// Microseconds since the boot; None: the source has no such time.
    pub at_us: Option<u64>,
    /// The message without time stamp and priority. Lines that go on with it are joined by a line end.
    pub text: String,
}

impl LogLine {
    /// The kernel says it of a process: it begins with the process's name, and may end with that of a file or of a group of
    /// processes, all of which whoever runs the process chose. `NAME[PID]: segfault at ...`, `NAME[PID]: unhandled ...`,
    /// `NAME[PID] bad frame in ...`, `traps: NAME[PID] ...`, `NAME (PID): ...`, `NAME(PID): ...`,
    /// `NAME invoked oom-killer: ...`, `NAME: page allocation failure: ...`.
    pub fn is_of_process(&self) -> bool {
        /// Most characters of a name, `TASK_COMM_LEN` without its end, and a blank.
        const LONGEST: usize = 16;
        let text = self.text.as_str();
        let ends_a_name = |at: usize| {
            let rest = &text[at..];
            let behind_number = |open, close| {
                let rest = rest.strip_prefix(open)?;
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                rest[digits..].strip_prefix(close).filter(|_| digits > 0)
            };
            let behind = behind_number('[', ']').or_else(|| behind_number('(', ')'));
            behind.is_some_and(|rest| rest.starts_with(": ") || rest.starts_with(" bad frame"))
                || rest.starts_with(" invoked oom-killer: ")
                || rest.starts_with(": page allocation failure")
        };
        let mut starts = text.char_indices().take(LONGEST + 1).map(|(at, _)| at);
        text.starts_with("traps: ") || starts.any(ends_a_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_processes() {
        for (text, of_process) in [
            ("amdgpu[42]: segfault at 0 ip 0 in a", true),
            (
                "NVRM: Xid ([42]: segfault at 0 in PCI:0000:01:00): 48",
                true,
            ),
            ("éééééééééééééé 1[42]: unhandled exception", true),
            ("0123456789abcde[1] bad frame in a", true),
            ("traps: a[1] general protection fault ip:1 in a", true),
            ("amdgpu (42): drop_caches: 3", true),
            ("amdgpu invoked oom-killer: gfp_mask=0", true),
            ("[drm]: page allocation failure: order:0", true),
            ("amdgpu 0000:03:00.0: ring[0]: timeout", false),
            ("[drm] kiq ring mec 2 pipe 1 q 0", false),
            ("0123456789abcdefg[1]: a", false),
            ("NVRM: a[]: b", false),
            ("NVRM: GPU[1] b", false),
            ("", false),
        ] {
            let line = LogLine {
                at_us: None,
                text: text.to_owned(),
            };
            assert_eq!(line.is_of_process(), of_process, "{text}");
        }
    }
}
