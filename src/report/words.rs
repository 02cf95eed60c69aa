//! How things are said: GPUs, subjects, conditions, in the same words in every format for people. Everything that comes from
//! the machine leaves here without characters that could steer a terminal.

use super::style::clean;
use super::{FindingRow, FoldedRow, GpuRow, HostLine, LinkRow, Report};
use crate::finding::{Confidence, Severity};
use crate::fix::{Fix, Risk};
use crate::readiness::{FindingRef, Readiness, State};
use std::collections::{BTreeMap, BTreeSet};

/// Longest piece of evidence that is shown whole, in characters. What is longer is no attribute but a whole file.
const LONGEST: usize = 480;
/// Most addresses that a merged finding lists.
const ADDRESSES: usize = 8;

/// Text from the machine, safe and of bearable length.
pub(super) fn safe(text: &str) -> String {
    let text = clean(text);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!(
            "{} ... ({} more characters)",
            &text[..end],
            text[end..].chars().count()
        ),
        None => text,
    }
}

/// `text`, or nothing where it is empty.
pub(super) fn filled(text: &Option<String>) -> Option<String> {
    text.as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(safe)
}

/// Puts together what has the same key, in the order of the first of each. Not by looking through the groups each time: there
/// may be thousands.
pub(super) fn grouped<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> Vec<Vec<&T>> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for item in items {
        let place = *places.entry(key(item)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

pub(super) fn gib(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    let tenths = (u128::from(bytes) * 10 + u128::from(GIB / 2)) / u128::from(GIB);
    if tenths == 0 {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{}.{} GiB", tenths / 10, tenths % 10)
    }
}

pub(super) fn counted(number: usize, one: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {one}s")
    }
}

/// The key of a GPU, in words where it is no address.
pub(super) fn key_words(key: &str) -> String {
    match (key.strip_prefix("proc:"), key.strip_prefix("kfd:")) {
        (Some(address), _) => clean(address),
        (_, Some(node)) => format!("KFD node {}", clean(node)),
        _ => clean(key),
    }
}

fn maker(vendor: &Option<String>) -> Option<&str> {
    match vendor.as_deref() {
        Some("nvidia") => Some("NVIDIA"),
        Some("amd") => Some("AMD"),
        Some("intel") => Some("Intel"),
        _ => None,
    }
}

pub(super) fn title_of(gpu: &GpuRow) -> String {
    let maker = maker(&gpu.vendor);
    let id = filled(&gpu.id);
    let name = filled(&gpu.name);
    match (name, id) {
        (Some(name), _) => {
            let prefix = maker
                .filter(|maker| !name.to_lowercase().starts_with(&maker.to_lowercase()))
                .map_or(String::new(), |maker| format!("{maker} "));
            format!("{prefix}{name}")
        }
        (None, Some(id)) => format!("{} {id}, name unknown", with_gpu(maker)),
        (None, None) => format!("{}, name unknown", with_gpu(maker)),
    }
}

fn with_gpu(maker: Option<&str>) -> String {
    maker.map_or("GPU".to_owned(), |maker| format!("{maker} GPU"))
}

pub(super) fn place_of(gpu: &GpuRow) -> String {
    match &gpu.pci {
        Some(pci) if *pci == gpu.key => clean(pci),
        Some(pci) => format!("{} ({})", clean(pci), clean(&gpu.key)),
        None if gpu.key == "dxg" => "dxg (through Windows)".to_owned(),
        None if gpu.key.starts_with("proc:") => {
            format!("{} (gone from the bus)", key_words(&gpu.key))
        }
        None if gpu.lost => format!("{} (gone from the bus)", key_words(&gpu.key)),
        None => key_words(&gpu.key),
    }
}

/// What a GPU is. What is not known is left out.
pub(super) fn hardware(gpu: &GpuRow) -> Vec<String> {
    let mut traits = Vec::new();
    traits.extend(filled(&gpu.architecture));
    traits.extend(filled(&gpu.target));
    if let Some(bytes) = gpu.memory_bytes.filter(|bytes| *bytes > 0) {
        traits.push(gib(bytes));
    }
    if gpu.integrated == Some(true) {
        traits.push("integrated".to_owned());
    }
    traits.extend(gpu.link.as_ref().and_then(link_words));
    let id = filled(&gpu.id).filter(|_| filled(&gpu.name).is_some());
    traits.extend(id.map(|id| format!("id {id}")));
    traits
}

/// How a GPU is driven. An unknown driver is said: it is what everyone looks for.
pub(super) fn state(gpu: &GpuRow) -> Vec<String> {
    let mut traits = vec![driver_words(gpu)];
    if gpu.lost && gpu.pci.is_some() {
        traits.push("LOST".to_owned());
    }
    if gpu.asleep == Some(true) {
        traits.push("asleep".to_owned());
    }
    if gpu.passed_in == Some(false) {
        traits.push("not passed in".to_owned());
    }
    traits
}

pub(super) fn driver_words(gpu: &GpuRow) -> String {
    let Some(driver) = filled(&gpu.driver) else {
        return if gpu.key == "dxg" {
            "driver of Windows".to_owned()
        } else {
            "driver unknown".to_owned()
        };
    };
    if driver == "none" {
        return "no driver bound".to_owned();
    }
    let version = filled(&gpu.driver_version).map_or(String::new(), |text| format!(" {text}"));
    let flavour = filled(&gpu.flavour).map_or(String::new(), |text| format!(" ({text})"));
    format!("driver {driver}{version}{flavour}")
}

/// The link as cards are sold, `PCIe 4.0 x16`, and what it runs at now where that differs: idle GPUs slow it down.
pub(super) fn link_words(link: &LinkRow) -> Option<String> {
    let known = |width: Option<u32>| width.filter(|width| (1..=32).contains(width));
    let now = (speed_words(&link.speed), known(link.width));
    let most = (speed_words(&link.max_speed), known(link.max_width));
    let words = |speed: &Option<String>, width: Option<u32>| {
        let width = width.map(|width| format!("x{width}"));
        let parts: Vec<String> = speed.iter().cloned().chain(width).collect();
        Some(parts.join(" ")).filter(|words| !words.is_empty())
    };
    let same_width = now.1 == most.1 && now.0.is_some();
    let short = words(&now.0, now.1.filter(|_| !same_width));
    // A width that no link has is left out, as of a GPU that does not answer: then only the speed can differ.
    let same = (now.0.is_none() || now.0 == most.0) && (now.1.is_none() || now.1 == most.1);
    match (words(&now.0, now.1), words(&most.0, most.1)) {
        (None, None) => None,
        (Some(now), None) => Some(format!("PCIe {now}")),
        (None, Some(most)) => Some(format!("PCIe up to {most}")),
        (Some(_), Some(most)) if same => Some(format!("PCIe {most}")),
        (Some(now), Some(most)) => Some(format!("PCIe {most} (now {})", short.unwrap_or(now))),
    }
}

/// `16.0 GT/s PCIe` as the version of the standard that brought this speed.
fn speed_words(speed: &Option<String>) -> Option<String> {
    let speed = filled(speed)?;
    let rate = speed.split_whitespace().next().unwrap_or_default();
    let version = match rate.trim_end_matches(".0") {
        "2.5" => "1.0",
        "5" => "2.0",
        "8" => "3.0",
        "16" => "4.0",
        "32" => "5.0",
        "64" => "6.0",
        _ if rate.starts_with(|first: char| first.is_ascii_digit()) => return Some(speed),
        _ => return None,
    };
    Some(version.to_owned())
}

pub(super) fn indexes(gpu: &GpuRow) -> Vec<String> {
    let index = &gpu.index;
    let mut all = Vec::new();
    all.extend(index.nvml.map(|number| format!("NVML {number}")));
    all.extend(index.cuda.map(|number| format!("CUDA {number}")));
    all.extend(index.hip.map(|number| format!("HIP {number}")));
    all.extend(filled(&index.drm_card));
    all.extend(filled(&index.render));
    if !index.kfd_nodes.is_empty() {
        let plural = if index.kfd_nodes.len() > 1 { "s" } else { "" };
        let nodes: Vec<String> = index.kfd_nodes.iter().map(u32::to_string).collect();
        all.push(format!("KFD node{plural} {}", nodes.join(" ")));
    }
    all
}

/// The findings as they are printed and counted: the same of several GPUs is one.
pub(super) fn groups(report: &Report) -> Vec<Vec<&FindingRow>> {
    grouped(&report.findings, in_common)
}

pub(super) fn gpu_key(subject: &str) -> Option<&str> {
    subject.strip_prefix("gpu ")
}

/// What findings have in common that are printed as one: they are about GPUs, and equal once each one's own address is taken
/// out. Evidence may differ, it is shown for the first alone.
fn in_common(finding: &FindingRow) -> Vec<String> {
    let Some(key) = gpu_key(&finding.subject) else {
        return vec![
            finding.check.clone(),
            finding.subject.clone(),
            finding.title.clone(),
        ];
    };
    let mut texts = vec![
        finding.check.clone(),
        format!(
            "{:?} {:?} {:?}",
            finding.cause, finding.severity, finding.confidence
        ),
        neutral(&finding.title, key),
        neutral(&finding.why, key),
    ];
    for fix in &finding.fixes {
        texts.push(format!("{} {:?} {:?}", fix.needs_root, fix.after, fix.risk));
        texts.extend([&fix.words, &fix.confirm].map(|text| neutral(text, key)));
        texts.extend(fix.commands.iter().map(|command| neutral(command, key)));
    }
    texts
}

/// A text without the address of the GPU that it is about.
pub(super) fn neutral(text: &str, key: &str) -> String {
    text.replace(key, "\0")
}

/// Whom a finding is about, in words.
pub(super) fn subjects(report: &Report, group: &[&FindingRow], verbose: bool) -> String {
    let keys: Vec<&str> = group
        .iter()
        .filter_map(|row| gpu_key(&row.subject))
        .collect();
    if keys.len() == group.len() {
        addresses(report, &keys, verbose)
    } else {
        subject_words(&group[0].subject)
    }
}

pub(super) fn subject_words(subject: &str) -> String {
    if subject == "machine" {
        return "this machine".to_owned();
    }
    match (gpu_key(subject), subject.strip_prefix("stack ")) {
        (Some(key), _) => format!("GPU {}", key_words(key)),
        (_, Some(stack)) => stack_name(stack),
        _ => safe(subject),
    }
}

/// A short list of GPUs. The PCI domain is left out where all have the usual one.
pub(super) fn addresses(report: &Report, keys: &[&str], all: bool) -> String {
    if let [key] = keys {
        return format!("GPU {}", key_words(key));
    }
    if keys.len() == report.gpus.len() && !all {
        return match keys.len() {
            2 => "both GPUs".to_owned(),
            number => format!("all {number} GPUs"),
        };
    }
    let usual = keys.iter().all(|key| key.starts_with("0000:"));
    let shown = if all { keys.len() } else { ADDRESSES };
    let mut list: Vec<String> = keys
        .iter()
        .take(shown)
        .map(|key| clean(key.strip_prefix("0000:").filter(|_| usual).unwrap_or(key)))
        .collect();
    if keys.len() > shown {
        list.push(format!("and {} more", keys.len() - shown));
    }
    format!("GPUs {}", list.join(" "))
}

/// What a fix asks for and may cost, in a few words.
pub(super) fn conditions(fix: &Fix) -> String {
    let mut conditions = Vec::new();
    if fix.needs_root {
        conditions.push("needs root".to_owned());
    }
    if let Some(after) = filled(&fix.after) {
        conditions.push(format!("then {after}"));
    }
    match fix.risk {
        Risk::Safe => {}
        Risk::Disruptive => conditions.push("interrupts what runs".to_owned()),
        Risk::DataLoss => conditions.push("MAY LOSE DATA".to_owned()),
    }
    conditions.join(", ")
}

/// Whether a stack deserves a line: one that is not set up and has no hardware here is no news.
pub(super) fn concerns(report: &Report, readiness: &Readiness) -> bool {
    let Some(vendor) = vendor_of(&readiness.stack) else {
        return !report.gpus.is_empty() || readiness.state == State::Broken;
    };
    let silent = matches!(readiness.state, State::NotSetUp | State::Unknown);
    let no_hardware = report
        .gpus
        .iter()
        .all(|gpu| gpu.vendor.as_deref().is_some_and(|maker| maker != vendor));
    !(silent && no_hardware && (report.gpus_whole || report.gpus.is_empty()))
}

/// Whose GPUs a stack is for; None: anybody's.
fn vendor_of(stack: &str) -> Option<&'static str> {
    match stack {
        "cuda" => Some("nvidia"),
        "rocm" => Some("amd"),
        "level-zero" => Some("intel"),
        _ => None,
    }
}

pub(super) fn stack_name(stack: &str) -> String {
    match stack {
        "cuda" => "CUDA".to_owned(),
        "rocm" => "ROCm".to_owned(),
        "level-zero" => "Intel compute".to_owned(),
        "vulkan" => "Vulkan".to_owned(),
        "opencl" => "OpenCL".to_owned(),
        other => safe(other),
    }
}

fn partly(report: &Report, readiness: &Readiness) -> String {
    let keys: Vec<&str> = readiness.gpus.iter().map(String::as_str).collect();
    match keys.len() {
        0 => "partly ready".to_owned(),
        1 => format!(
            "partly ready, {} alone looks right",
            addresses(report, &keys, false)
        ),
        number => {
            let all = report.gpus.iter().filter(|gpu| {
                gpu.vendor.as_deref() == vendor_of(&readiness.stack) && gpu.vendor.is_some()
            });
            let all = all.count();
            format!("partly ready, {number} of {all} GPUs look right")
        }
    }
}

/// The name of a stack, how far it works, and why; a stack that is ready needs no reason.
pub(super) fn stack_words(report: &Report, readiness: &Readiness) -> (String, String, String) {
    let state = match readiness.state {
        State::Ready => "looks ready, no kernel was run".to_owned(),
        State::Partial => partly(report, readiness),
        State::Broken => "not ready".to_owned(),
        State::NotSetUp => "not set up".to_owned(),
        State::Unknown => "unknown".to_owned(),
    };
    let mut because = match readiness.state {
        State::Ready => String::new(),
        _ => safe(readiness.because.trim()),
    };
    if let Some(number) = readiness.finding.as_ref().and_then(|of| number(report, of)) {
        because += &format!("; see finding {number}");
    }
    if let (State::Broken, Some(link)) = (readiness.state, readiness.broken_at) {
        because += &format!(" (breaks at: {})", link.name());
    }
    (stack_name(&readiness.stack), state, because)
}

/// Under which number a finding is printed. None: it is not shown.
fn number(report: &Report, of: &FindingRef) -> Option<usize> {
    let is_it = |row: &&FindingRow| row.check == of.check && row.subject == of.subject;
    let place = groups(report)
        .iter()
        .position(|group| group.iter().any(is_it))?;
    Some(place + 1)
}

/// The system in one line: `Ubuntu 24.04, Linux 6.8.0-49-generic, x86_64`.
pub(super) fn system_words(host: &HostLine) -> String {
    let system = match (filled(&host.os), filled(&host.kernel)) {
        (Some(os), Some(kernel)) => format!("{os}, Linux {kernel}"),
        (Some(os), None) => os,
        (None, Some(kernel)) => format!("Linux {kernel}"),
        (None, None) => "an unknown system".to_owned(),
    };
    let machine = filled(&host.machine).map_or(String::new(), |machine| format!(", {machine}"));
    let place = match filled(&host.place).as_deref() {
        None | Some("host") => String::new(),
        Some(place) => match place.strip_prefix("wsl") {
            Some(version) => format!(", WSL{version}"),
            None => format!(", {place}"),
        },
    };
    format!("{system}{machine}{place}")
}

/// The stacks that deserve a line, what is broken first.
pub(super) fn stacks(report: &Report) -> Vec<&Readiness> {
    let mut stacks: Vec<&Readiness> = report
        .readiness
        .iter()
        .filter(|readiness| concerns(report, readiness))
        .collect();
    stacks.sort_by_key(|readiness| match readiness.state {
        State::Broken => 0,
        State::Partial => 1,
        State::Ready | State::NotSetUp | State::Unknown => 2,
    });
    stacks
}

/// Why no stack has a line, where there are GPUs.
pub(super) fn not_judged(report: &Report) -> Option<&'static str> {
    if !stacks(report).is_empty() || report.gpus.is_empty() {
        None
    } else if report.findings.is_empty() {
        Some("No compute stack was judged")
    } else {
        Some("No compute stack was judged; see the findings below")
    }
}

/// That the next boot will likely break what works now, and who tells how to mend it.
pub(super) fn next_boot_words(report: &Report) -> Option<String> {
    filled(&report.next_boot).map(|text| format!("{text}; `gpucheck advise` tells what to do"))
}

/// That no GPU was found, or why that is not known.
pub(super) fn no_gpu_words(report: &Report) -> String {
    if report.gpus_whole {
        return "No GPU was found on this machine".to_owned();
    }
    let row = report
        .untold
        .iter()
        .find(|row| row.what == "which GPUs are here");
    let why = row.map_or(String::new(), |row| format!(": {}", safe(&row.why)));
    format!("Which GPUs are here could not be told{why}")
}

/// Some stack cannot work.
pub(super) fn is_broken(report: &Report) -> bool {
    let mut states = report.readiness.iter().map(|row| row.state);
    states.any(|state| state == State::Broken)
}

/// The findings in numbers, as they are printed; without one, what that is worth.
pub(super) fn verdict_words(report: &Report) -> String {
    let printed = groups(report);
    let mut found = Vec::new();
    for wanted in [Severity::Error, Severity::Warning, Severity::Note] {
        let number = printed.iter().filter(|group| group[0].severity == wanted);
        match number.count() {
            0 => {}
            number => found.push(counted(number, severity(wanted))),
        }
    }
    let loud = report.counts.errors + report.counts.warnings > 0;
    let doubt = match loud || is_broken(report) {
        true => None,
        false => doubtful(report),
    };
    if let (Some(doubt), true) = (doubt, found.is_empty()) {
        format!("Nothing wrong was found, but {doubt}")
    } else if !found.is_empty() {
        found.join(", ")
    } else if is_broken(report) {
        "No finding is shown, and yet not every stack is ready".to_owned()
    } else if nothing_told(report) {
        "Nothing wrong was found, but too little could be looked at".to_owned()
    } else {
        "Nothing wrong was found".to_owned()
    }
}

/// Something of a stack did not answer as it does where the stack works, and no finding says what is wrong; or the next boot
/// breaks it.
pub(super) fn doubtful(report: &Report) -> Option<String> {
    if report.next_boot.is_some() {
        return Some("the next boot will likely break".to_owned());
    }
    let stacks = stacks(report);
    let of_vendor = |row: &&&Readiness| vendor_of(&row.stack).is_some();
    let mut rows = stacks.iter().filter(of_vendor);
    rows.find_map(|row| {
        let name = stack_name(&row.stack);
        match row.state {
            State::Partial => Some(format!("{name} is only partly ready")),
            State::Unknown if row.doubt => Some(format!("whether {name} works is not known")),
            _ => None,
        }
    })
}

/// Silence is no praise: nothing was fine, or nobody knows what is here.
pub(super) fn nothing_told(report: &Report) -> bool {
    let counts = &report.counts;
    (counts.fine == 0 && counts.cannot_tell > 0) || (report.gpus.is_empty() && !report.gpus_whole)
}

/// The severity in a word.
pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// What is said behind the subject of a finding that is not certain.
pub(super) fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Likely => ", likely",
        Confidence::Certain => "",
    }
}

/// The title of a finding that may be that of several GPUs.
pub(super) fn title(group: &[&FindingRow]) -> String {
    let first = group[0];
    let title = safe(&first.title);
    if group.len() > 1 && gpu_key(&first.subject).is_some_and(|key| first.title.contains(key)) {
        return format!("{title} (and {})", counted(group.len() - 1, "more GPU"));
    }
    title
}

/// The commands of a fix. Each GPU of a merged finding may need one of its own; what is common is said once.
pub(super) fn commands(group: &[&FindingRow], position: usize) -> Vec<String> {
    let mut said = BTreeSet::new();
    group
        .iter()
        .flat_map(|row| row.fixes.get(position))
        .flat_map(|fix| &fix.commands)
        .map(|command| clean(command.trim()))
        .filter(|command| said.insert(command.clone()))
        .collect()
}

/// What a finding explains, each as the name of a check and what it said, the same of several subjects once; and how many
/// questions have no answer because of it, which are only told where all is.
pub(super) fn explained(group: &[&FindingRow], all: bool) -> (Vec<(String, String)>, usize) {
    let (told, unanswered): (Vec<_>, Vec<_>) = group
        .iter()
        .flat_map(|root| root.folded.iter().map(move |row| (*root, row)))
        .partition(|(_, row): &(&FindingRow, &FoldedRow)| all || row.was != "cannot_tell");
    let same = |(root, row): &(&FindingRow, &FoldedRow)| {
        let key = gpu_key(&row.subject).or(gpu_key(&root.subject));
        let says = key.map_or_else(|| row.says.clone(), |key| neutral(&row.says, key));
        (row.check.clone(), row.was.clone(), says)
    };
    let lines = grouped(&told, same).into_iter().map(|lines| {
        let row = lines[0].1;
        let mut says = String::new();
        if lines.len() > 1 {
            says += &format!(" ({} times)", lines.len());
        }
        if row.was == "cannot_tell" {
            says += ": cannot be told";
        }
        says += &format!(": {}", safe(row.says.trim()));
        (clean(&row.check), says)
    });
    (lines.collect(), unanswered.len())
}

/// What was asked, in words, and of which GPU.
pub(super) struct Question<'a> {
    pub(super) words: String,
    pub(super) gpu: Option<&'a str>,
    /// A value of the GPU, not a check about it.
    pub(super) of_gpu: bool,
}

/// `CHECK (gpu KEY)`, `CHECK (stack NAME)`, `gpu KEY FIELD` or anything else.
pub(super) fn question(what: &str) -> Question<'_> {
    let about = what
        .strip_suffix(')')
        .and_then(|what| what.split_once(" ("));
    let value = what
        .strip_prefix("gpu ")
        .and_then(|what| what.split_once(' '));
    let (words, gpu) = match (about, value) {
        (Some((check, subject)), _) if subject.starts_with("gpu ") => {
            (safe(check), subject.strip_prefix("gpu "))
        }
        (Some((check, subject)), _) if subject.starts_with("stack ") => (
            format!("{} ({})", safe(check), subject_words(subject)),
            None,
        ),
        (_, Some((key, field))) => {
            let words = match field {
                "id" => "PCI id".to_owned(),
                "memory_bytes" => "memory".to_owned(),
                "asleep" => "power state".to_owned(),
                "integrated" => "kind (integrated or not)".to_owned(),
                "link" => "PCIe link".to_owned(),
                "index.nvml" => "number of NVML".to_owned(),
                "index.cuda" => "number of CUDA".to_owned(),
                "index.hip" => "number of HIP".to_owned(),
                "index.drm_card" => "DRM card".to_owned(),
                "index.render" => "render node".to_owned(),
                _ => safe(field),
            };
            (words, Some(key))
        }
        _ => match what.strip_prefix("source ") {
            Some("nvml") => ("NVML".to_owned(), None),
            Some("cuda") => ("the CUDA library".to_owned(), None),
            Some("rocm_smi") => ("ROCm SMI".to_owned(), None),
            Some("kernel_log") => ("the kernel log".to_owned(), None),
            _ => (safe(what), None),
        },
    };
    Question {
        words,
        gpu,
        of_gpu: gpu.is_some() && value.is_some(),
    }
}
