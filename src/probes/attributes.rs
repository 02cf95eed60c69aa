//! Small readings that several hardware probes share: numbers in attributes, PCI addresses in paths, and whether a device
//! may be asked without waking it.

use crate::facts::{Seen, Why};
use crate::host::{Host, beside};
use std::str::FromStr;

/// Most things of one kind that a hardware probe looks at: functions on a bus, nodes, minors.
pub(super) const COUNT_LIMIT: usize = 4096;
/// Longest single attribute, in bytes. No attribute that is one value comes near it.
const VALUE_LIMIT: usize = 4096;

/// One value of a sysfs attribute.
pub(super) fn word(host: &Host, path: &str) -> Seen<String> {
    host.value(path).and_then(|value| {
        if value.is_empty() {
            Seen::error("empty")
        } else if value.len() > VALUE_LIMIT {
            Seen::error("too long for an attribute")
        } else {
            Seen::Got(value)
        }
    })
}

/// A decimal number in an attribute.
pub(super) fn number<T: FromStr>(host: &Host, path: &str) -> Seen<T> {
    // The content stays out of the message: it may hold anything.
    word(host, path).and_then(|value| match value.parse() {
        Ok(number) => Seen::Got(number),
        Err(_) => Seen::error("not a number of the expected kind"),
    })
}

/// A number in hexadecimal with or without `0x`, as the id attributes have it.
pub(super) fn parse_hex(text: &str) -> Option<u32> {
    let digits = text.trim();
    let digits = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
        .unwrap_or(digits);
    // `from_str_radix` takes a sign, ids have none.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// Whether this is a PCI address in the form that sysfs uses (`0000:01:00.0`; the domain may have more digits).
pub(super) fn is_pci_address(name: &str) -> bool {
    let hex = |part: &str| {
        part.bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let mut parts = name.split(':');
    let (Some(domain), Some(bus), Some(slot), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Some((device, function)) = slot.split_once('.') else {
        return false;
    };
    (4..=8).contains(&domain.len())
        && hex(domain)
        && bus.len() == 2
        && hex(bus)
        && device.len() == 2
        && hex(device)
        && matches!(function.as_bytes(), [b'0'..=b'7'])
}

/// The name is a prefix followed by a decimal number (`card0`, `renderD128`).
pub(super) fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|digits| {
        (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

/// Where a device's folder below `/sys/devices` is: the target of a link that stands in a folder without links in its own
/// path. One `readlink` does; all links of the path are looked up only where that gives no device path.
pub(super) fn device_path(host: &Host, folder: &str, name: &str) -> Seen<String> {
    let link = format!("{folder}/{name}");
    let target = host
        .link(&link)
        .into_got()
        .map(|target| beside(&link, &target))
        .filter(|path| path.starts_with("/sys/devices/"));
    match target {
        Some(path) => Seen::Got(path),
        None => host.real(&link),
    }
}

/// How a device stands to being asked for what goes to the hardware.
#[derive(Debug)]
pub(super) struct Power {
    /// `power/runtime_status`.
    pub(super) runtime_status: Seen<String>,
    /// `power_state`.
    pub(super) power_state: Seen<String>,
    wake: bool,
}

impl Power {
    /// Reads how the device's power stands. Neither attribute touches the device.
    pub(super) fn read(host: &Host, folder: &str) -> Power {
        Power {
            runtime_status: word(host, &format!("{folder}/power/runtime_status")),
            power_state: word(host, &format!("{folder}/power_state")),
            wake: host.options().wake,
        }
    }

    /// Runs the question where it wakes nobody. A device in D3 counts as asleep whatever its runtime status is: graphics
    /// switches turn cards off behind the back of runtime power management, and such a card answers with all ones.
    pub(super) fn if_awake<T>(&self, ask: impl FnOnce() -> Seen<T>) -> Seen<T> {
        if self.wake {
            return ask();
        }
        if self
            .power_state
            .got()
            .is_some_and(|state| state.starts_with("D3"))
        {
            return Seen::Unasked(Why::Asleep);
        }
        match &self.runtime_status {
            Seen::Got(status) if status == "active" || status == "unsupported" => ask(),
            Seen::Got(_) => Seen::Unasked(Why::Asleep),
            // Without the attribute there is no runtime power management, or a recording has left it out.
            Seen::Absent | Seen::Unasked(Why::NotCaptured) => ask(),
            Seen::Unasked(why) => Seen::Unasked(*why),
            // It may sleep: what kept us from knowing is why there is no answer.
            Seen::Failed(failure) => Seen::Failed(failure.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Failure;

    #[test]
    fn addresses() {
        for good in [
            "0000:01:00.0",
            "10000:e1:00.7",
            "0035:04:1f.3",
            "0000:ff:1f.7",
        ] {
            assert!(is_pci_address(good), "{good}");
        }
        for bad in [
            "",
            "pci0000:00",
            "0000:01:00",
            "0000:01:00.8",
            "0000:01:00.00",
            "0000:1:00.0",
            "0000:01:0g.0",
            "0000:01:00.0:0",
            "000000000:01:00.0",
            "0000:01:00.0\u{1b}[31m",
            "0000:AB:00.0",
        ] {
            assert!(!is_pci_address(bad), "{bad}");
        }
    }

    #[test]
    fn numbered_names() {
        assert!(is_numbered("card0", "card"));
        assert!(is_numbered("renderD128", "renderD"));
        assert!(!is_numbered("card0-HDMI-A-1", "card"));
        assert!(!is_numbered("card", "card"));
        assert!(!is_numbered("card99999999999999999999", "card"));
        assert!(!is_numbered("version", "card"));
    }

    #[test]
    fn hexadecimal() {
        assert_eq!(parse_hex("0x10de\n"), Some(0x10de));
        assert_eq!(parse_hex("30000"), Some(0x30000));
        assert_eq!(parse_hex("-1"), None);
        assert_eq!(parse_hex("0x"), None);
        assert_eq!(parse_hex("0x1ffffffff"), None);
    }

    fn power(runtime_status: Seen<String>, power_state: Seen<String>, wake: bool) -> Power {
        Power {
            runtime_status,
            power_state,
            wake,
        }
    }

    #[test]
    fn only_what_is_awake_is_asked() {
        let got = |text: &str| Seen::Got(text.to_owned());
        let unknown = Seen::default;
        let ask = |power: Power| power.if_awake(|| Seen::Got(()));
        let asleep = Seen::Unasked(Why::Asleep);
        assert_eq!(ask(power(got("active"), unknown(), false)), Seen::Got(()));
        assert_eq!(
            ask(power(got("unsupported"), got("D0"), false)),
            Seen::Got(())
        );
        assert_eq!(ask(power(unknown(), unknown(), false)), Seen::Got(()));
        assert_eq!(ask(power(Seen::Absent, got("D0"), false)), Seen::Got(()));
        assert_eq!(ask(power(got("suspended"), unknown(), false)), asleep);
        assert_eq!(ask(power(got("suspending"), got("D0"), false)), asleep);
        assert_eq!(ask(power(unknown(), got("D3cold"), false)), asleep);
        assert_eq!(ask(power(got("active"), got("D3cold"), false)), asleep);
        assert_eq!(
            ask(power(got("suspended"), got("D3cold"), true)),
            Seen::Got(())
        );
        let broken = Seen::Failed(Failure::errno("EIO"));
        assert_eq!(
            ask(power(broken, unknown(), false)),
            Seen::Failed(Failure::errno("EIO"))
        );
    }
}
