//! A GPU was switched off to save power and does not come back.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{Gpu, View};

crate::check! {
    /// The GPU was switched off to save power (D3cold), and the kernel could not switch it on again.
    ///
    /// ## Why it matters
    /// Nothing reaches such a GPU: its driver fails, and programs that ask for it hang.
    ///
    /// ## How it comes about
    /// Runtime power management, or a tool for saving power (TLP, powertop, bbswitch), switches a GPU of a laptop off while it
    /// is unused; the firmware or the driver then does not bring it back. A GPU that is just suspended is healthy.
    ///
    /// ## How to confirm
    /// `sudo journalctl -k -b -g D3cold` has "Unable to change power state from D3cold to D0, device inaccessible";
    /// `cat /sys/bus/pci/devices/ADDRESS/power_state`.
    "gpu-stuck-in-d3cold", Bus, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let Some(address) = gpu
        .pci
        .as_deref()
        .filter(|_| gpu.is_on_bus() && view.wsl().is_none())
    else {
        return Verdict::NotHere;
    };
    let status_file = format!("/sys/bus/pci/devices/{address}/power/runtime_status");
    let state_file = format!("/sys/bus/pci/devices/{address}/power_state");
    let ask = format!("`cat {state_file} {status_file}`, `sudo journalctl -k -b -g D3cold`");
    let Some(detail) = view.detail_of(gpu) else {
        return Verdict::cannot_tell("how its power stands is not known", ask);
    };
    let status = detail.runtime_status.got().map(String::as_str);
    match status {
        Some("suspended" | "suspending" | "resuming") => {
            return Verdict::fine("asleep, which is healthy");
        }
        None if detail.runtime_status.is_unknown() => {
            return Verdict::cannot_tell(
                format!("{status_file}: {}", detail.runtime_status.why()),
                ask,
            );
        }
        _ => {}
    }
    let failed = view
        .log_of(gpu)
        .filter(|event| event.kind == Kind::DeviceInaccessible)
        .filter(|event| event.line.text.contains("from D3cold"))
        .last();
    let is_cold = detail
        .power_state
        .got()
        .is_some_and(|state| state == "D3cold");
    let is_silent = detail
        .config
        .got()
        .is_some_and(|config| config.len() >= 8 && config.bytes().all(|digit| digit == b'f'));
    let mut finding = Finding::new("the GPU was switched off to save power and does not come back")
        .saw_answer(&status_file, &detail.runtime_status)
        .saw_answer(&state_file, &detail.power_state)
        .why("Nothing reaches it until it has been without power, and it will happen again as long as it may be switched off")
        .fix(FixCall::new("power-cycle-and-reseat"))
        .fix(FixCall::new("keep-gpu-powered"));
    match (failed, status) {
        (Some(event), _) if is_silent || is_cold || status == Some("error") => {
            finding = finding.saw(view.log_source(), event.says());
            finding.into()
        }
        (Some(_), _) if detail.config.got().is_some() => {
            Verdict::fine("it did not come back once, and answers now")
        }
        (Some(event), _) => Verdict::cannot_tell(
            format!(
                "the kernel log has `{}`; whether it answers now is not known",
                event.says()
            ),
            ask,
        ),
        // The kernel gave up on bringing it back.
        (None, Some("error")) if is_cold => finding.likely().into(),
        (None, _) if is_cold && view.log_tells().is_unknown() => Verdict::cannot_tell(
            format!(
                "it is in D3cold and counts as awake; whether it failed to come back stands in the kernel log: {}",
                view.log_tells().why()
            ),
            ask,
        ),
        // Switched off behind the back of runtime power management, as graphics switches do.
        (None, _) if is_cold => {
            Verdict::fine("switched off, and nothing shows that it failed to come back")
        }
        (None, _) => match &detail.power_state {
            Seen::Got(state) => Verdict::fine(format!("its power state is {state}")),
            Seen::Absent => Verdict::fine("it counts as awake"),
            other => Verdict::cannot_tell(format!("{state_file}: {}", other.why()), ask),
        },
    }
}
