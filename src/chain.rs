//! Asks every check about every subject, then folds: one root cause, one finding; consequences hang under it.
//!
//! Checks know nothing of each other. Folding is a pure function of the verdicts and of `blocks` in the index:
//! - A finding folds what its `blocks` names, findings and unanswered questions alike, about the same subject or one that
//!   is contained in it. A machine contains all, a stack its GPUs and what is built for it; what every GPU of a stack has
//!   counts for the stack.
//! - An error folds each unanswered question of a later link by the same rule of subjects.
//! - Folding is transitive. Who is folded by several hangs on the root of the earliest link, then by name. A cycle is cut
//!   there too: the earlier one is the root.

use crate::check::{Ask, Check, Link, Verdict};
use crate::finding::Severity;
use crate::tables::{IndexRow, Tables};
use crate::view::{Gpu, Stack, Vendor, View, Wanted};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whom an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The whole machine.
    Machine,
    /// A compute stack.
    Stack(Stack),
    /// A GPU, by its key.
    Gpu(String),
    /// What brings a runtime of its own, by its key.
    Environment(String),
}

impl Subject {
    /// How reports name it.
    pub fn name(&self) -> String {
        match self {
            Subject::Machine => "machine".to_owned(),
            Subject::Stack(stack) => format!("stack {}", stack.name()),
            Subject::Gpu(key) => format!("gpu {key}"),
            Subject::Environment(key) => format!("environment {key}"),
        }
    }
}

/// One answer: one check about one subject.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The check.
    pub check: &'static str,
    /// Its link.
    pub link: Link,
    /// Whom it is about.
    pub subject: Subject,
    /// What the check said.
    pub verdict: Verdict,
    /// For a finding: how bad, settled from its own and the check's severity, lowered where nobody wants the stack; a root
    /// takes the highest of what it folds.
    pub severity: Severity,
    /// How bad findings of the check usually are.
    pub usual: Severity,
    /// Index in the list of the root that explains this answer away.
    pub folded_into: Option<usize>,
}

impl Answer {
    /// Found, folded or not.
    pub fn is_found(&self) -> bool {
        matches!(self.verdict, Verdict::Found(_))
    }

    /// Found, and standing open.
    pub fn is_open(&self) -> bool {
        self.is_found() && self.folded_into.is_none()
    }

    /// It concerns a stack or a GPU of it; one about the machine only where it names the stack.
    pub fn is_about(&self, stack: Stack, view: &View) -> bool {
        match (&self.subject, &self.verdict) {
            (Subject::Machine, Verdict::Found(finding)) => finding.stack == Some(stack),
            (Subject::Machine, _) => false,
            (Subject::Stack(about), _) => *about == stack,
            (Subject::Gpu(key), _) => view.gpus_of(stack).any(|gpu| gpu.key == *key),
            // The stack may be right, and what was built for it wrong.
            (Subject::Environment(_), _) => false,
        }
    }
}

/// Asks `checks` about everything in the view that they apply to, and folds.
pub fn judge(checks: &[Check], view: &View, tables: &Tables) -> Vec<Answer> {
    let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
    let rows = tables.index(&names);
    let mut answers = Vec::new();
    let mut rows_of = Vec::new();
    for check in checks {
        let Some(row) = rows.iter().find(|row| row.name == check.name) else {
            continue;
        };
        for (subject, verdict) in ask(check, row, view, tables) {
            let severity = settle(check, row, &subject, &verdict, view);
            answers.push(Answer {
                check: check.name,
                link: check.link,
                subject,
                verdict,
                severity,
                usual: check.severity,
                folded_into: None,
            });
            rows_of.push(row);
        }
    }
    fold(&mut answers, &rows_of, view);
    answers
}

/// One check about each subject that it applies to.
fn ask(check: &Check, row: &IndexRow, view: &View, tables: &Tables) -> Vec<(Subject, Verdict)> {
    match check.ask {
        Ask::Gpu(run) => view
            .gpus
            .iter()
            .filter(|gpu| applies(row, gpu.vendor))
            .map(|gpu| {
                let verdict = guarded(|| run(gpu, view, tables));
                (Subject::Gpu(gpu.key.clone()), verdict)
            })
            .collect(),
        Ask::Stack(run) => view
            .stacks()
            .into_iter()
            .filter(|stack| applies(row, stack.vendor()))
            .map(|stack| {
                let verdict = guarded(|| run(stack, view, tables));
                (Subject::Stack(stack), verdict)
            })
            .collect(),
        Ask::Environment(run) => view
            .environments
            .iter()
            .filter(|environment| {
                // What it is built for may be what is not known.
                let vendor = environment.stack.map(Stack::vendor);
                vendor.is_none_or(|vendor| applies(row, vendor))
            })
            .map(|environment| {
                let verdict = guarded(|| run(environment, view, tables));
                (Subject::Environment(environment.key.clone()), verdict)
            })
            .collect(),
        Ask::Machine(run) => vec![(Subject::Machine, guarded(|| run(view, tables)))],
    }
}

fn applies(row: &IndexRow, vendor: Vendor) -> bool {
    let vendors = row.applies();
    vendors == "any" || vendors == vendor.name()
}

/// A bug in one check costs its answer, never the report.
fn guarded(run: impl FnOnce() -> Verdict) -> Verdict {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Verdict::cannot_tell(
            "this check failed itself: a bug in gpucheck",
            "a report of this bug with the output of `gpucheck capture`",
        )
    })
}

/// The severity of a finding: its own or the check's usual one, within the ceiling of the index; a note where the stack
/// that it concerns is not known to be wanted.
fn settle(
    check: &Check,
    row: &IndexRow,
    subject: &Subject,
    verdict: &Verdict,
    view: &View,
) -> Severity {
    let Verdict::Found(finding) = verdict else {
        return Severity::Note;
    };
    let Some(row) = row.row() else {
        return Severity::Note;
    };
    let severity = finding
        .severity
        .unwrap_or(check.severity)
        .min(row.max.unwrap_or(row.severity));
    let wanted = |stack: Stack| matches!(view.wanted(stack), Wanted::Yes(_));
    let heard = match row.stack.as_str() {
        "none" => true,
        "any" => match subject {
            Subject::Machine => finding.stack.is_none_or(wanted),
            Subject::Stack(stack) => wanted(*stack),
            Subject::Gpu(key) => find_gpu(view, key)
                .and_then(|gpu| gpu.vendor.stack())
                .is_some_and(wanted),
            // Who names a model wants it to run.
            Subject::Environment(key) if view.is_model(key) => true,
            Subject::Environment(key) => stack_of(view, key).is_some_and(wanted),
        },
        name => Stack::ALL
            .into_iter()
            .find(|stack| stack.name() == name)
            .is_some_and(wanted),
    };
    if heard { severity } else { Severity::Note }
}

fn find_gpu<'v>(view: &'v View, key: &str) -> Option<&'v Gpu> {
    view.gpus.iter().find(|gpu| gpu.key == key)
}

/// The stack that an environment is built for.
fn stack_of(view: &View, key: &str) -> Option<Stack> {
    let mut environments = view.environments.iter();
    environments
        .find(|environment| environment.key == key)
        .and_then(|environment| environment.stack)
}

/// Whom an answer hangs on, and how loud a root is.
fn fold(answers: &mut [Answer], rows: &[&IndexRow], view: &View) {
    let count = answers.len();
    let everywhere = found_everywhere(answers, view);
    // A crowd of GPUs has a hundred thousand answers, so nobody looks at all findings for each of them: what is about one
    // GPU or environment explains nothing of another one.
    let mut found: BTreeMap<&Subject, Vec<usize>> = BTreeMap::new();
    for (index, answer) in answers.iter().enumerate() {
        if answer.is_found() {
            found.entry(&answer.subject).or_default().push(index);
        }
    }
    let about_all: Vec<usize> = found
        .iter()
        .filter(|(subject, _)| matches!(subject, Subject::Machine | Subject::Stack(_)))
        .flat_map(|(_, indices)| indices.iter().copied())
        .collect();
    let everyones: Vec<usize> = (0..count)
        .filter(|index| {
            let answer = &answers[*index];
            let of_gpu = matches!(answer.subject, Subject::Gpu(_)) && answer.is_found();
            of_gpu
                && everywhere
                    .checks
                    .iter()
                    .any(|(check, _)| *check == answer.check)
        })
        .collect();
    // Who folds each answer by itself.
    let above: Vec<Vec<usize>> = (0..count)
        .map(|lower| {
            let answer = &answers[lower];
            if matches!(answer.verdict, Verdict::Fine(_) | Verdict::NotHere) {
                return Vec::new();
            }
            let own = match answer.subject {
                Subject::Machine | Subject::Stack(_) => None,
                Subject::Gpu(_) | Subject::Environment(_) => found.get(&answer.subject),
            };
            let of_gpus: &[usize] = match answer.subject {
                Subject::Machine | Subject::Gpu(_) => &[],
                Subject::Stack(_) | Subject::Environment(_) => &everyones,
            };
            about_all
                .iter()
                .chain(own.into_iter().flatten())
                .chain(of_gpus)
                .copied()
                .filter(|upper| {
                    *upper != lower && explains(answers, *upper, lower, rows, &everywhere)
                })
                .collect()
        })
        .collect();
    let reach: Vec<Vec<usize>> = (0..count).map(|start| all_above(start, &above)).collect();
    let rank = |index: usize| (answers[index].link, answers[index].check, index);
    let mut roots = vec![None; count];
    for lower in 0..count {
        // A root is explained by nothing, or only by what it explains itself: a cycle.
        let root = reach[lower]
            .iter()
            .copied()
            .chain([lower])
            .filter(|candidate| {
                reach[*candidate]
                    .iter()
                    .all(|upper| reach[*upper].contains(candidate))
            })
            .min_by_key(|candidate| rank(*candidate));
        roots[lower] = root.filter(|root| *root != lower);
    }
    for lower in 0..count {
        answers[lower].folded_into = roots[lower];
        if let Some(root) = roots[lower]
            && answers[lower].is_found()
        {
            answers[root].severity = answers[root].severity.max(answers[lower].severity);
        }
    }
}

/// Everything that explains `start`, directly or through others.
fn all_above(start: usize, above: &[Vec<usize>]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut open = above[start].clone();
    while let Some(next) = open.pop() {
        if !found.contains(&next) {
            found.push(next);
            open.extend(&above[next]);
        }
    }
    found
}

/// Checks about GPUs that found something at every GPU of a stack.
struct Everywhere<'v> {
    vendors: BTreeMap<&'v str, Vendor>,
    checks: BTreeSet<(&'static str, Stack)>,
    /// The stacks that environments are built for.
    environments: BTreeMap<&'v str, Option<Stack>>,
}

fn found_everywhere<'v>(answers: &[Answer], view: &'v View) -> Everywhere<'v> {
    let vendors: BTreeMap<&str, Vendor> = view
        .gpus
        .iter()
        .map(|gpu| (gpu.key.as_str(), gpu.vendor))
        .collect();
    let mut found: BTreeMap<(&'static str, Stack), usize> = BTreeMap::new();
    for answer in answers.iter().filter(|answer| answer.is_found()) {
        if let Subject::Gpu(key) = &answer.subject
            && let Some(stack) = vendors.get(key.as_str()).and_then(|vendor| vendor.stack())
        {
            *found.entry((answer.check, stack)).or_default() += 1;
        }
    }
    let checks = found
        .into_iter()
        .filter(|((_, stack), count)| *count == view.gpus_of(*stack).count())
        .map(|(check_of_stack, _)| check_of_stack)
        .collect();
    let environments = view.environments.iter();
    Everywhere {
        vendors,
        checks,
        environments: environments
            .map(|environment| (environment.key.as_str(), environment.stack))
            .collect(),
    }
}

/// The finding `upper` explains by itself the answer `lower`, which is a finding or an unanswered question.
fn explains(
    answers: &[Answer],
    upper: usize,
    lower: usize,
    rows: &[&IndexRow],
    everywhere: &Everywhere,
) -> bool {
    let (one, other) = (&answers[upper], &answers[lower]);
    let mut blocks = rows[upper].row().into_iter().flat_map(|row| &row.blocks);
    let named = blocks.any(|block| {
        block == other.check || (block == other.link.name() && same_vendor(one, other))
    });
    // What keeps no GPU from working explains nothing about the GPUs.
    let of_no_gpu = matches!(&one.verdict, Verdict::Found(finding) if finding.is_of_no_gpu());
    let later = matches!(other.verdict, Verdict::CannotTell { .. })
        && !of_no_gpu
        && one.severity == Severity::Error
        && one.link.in_chain()
        && other.link.in_chain()
        && one.link < other.link;
    (named || later) && covers(one, &other.subject, everywhere)
}

/// A whole link stands for its checks of the same vendor: what a finding about the machine says of one stack explains
/// nothing of another.
fn same_vendor(one: &Answer, other: &Answer) -> bool {
    let about = match &one.verdict {
        Verdict::Found(finding) => finding.stack,
        _ => None,
    };
    match (about, &other.subject) {
        (Some(about), Subject::Stack(stack)) => about == *stack,
        _ => true,
    }
}

/// The subject of a finding is that subject, or contains it, or all its parts have the finding.
fn covers(finding: &Answer, subject: &Subject, everywhere: &Everywhere) -> bool {
    let vendor = |key: &String| everywhere.vendors.get(key.as_str());
    let stack = |key: &String| everywhere.environments.get(key.as_str()).copied().flatten();
    match (&finding.subject, subject) {
        (Subject::Machine, _) => true,
        (_, Subject::Machine) => false,
        (Subject::Stack(one), Subject::Stack(other)) => one == other,
        (Subject::Stack(stack), Subject::Gpu(key)) => vendor(key) == Some(&stack.vendor()),
        (Subject::Gpu(one), Subject::Gpu(other)) => one == other,
        (Subject::Gpu(key), Subject::Stack(stack)) => {
            vendor(key) == Some(&stack.vendor())
                && everywhere.checks.contains(&(finding.check, *stack))
        }
        (Subject::Stack(one), Subject::Environment(key)) => stack(key) == Some(*one),
        // An environment can use every GPU of its stack.
        (Subject::Gpu(_), Subject::Environment(key)) => {
            stack(key).is_some_and(|stack| everywhere.checks.contains(&(finding.check, stack)))
        }
        (Subject::Environment(one), Subject::Environment(other)) => one == other,
        (Subject::Environment(_), Subject::Stack(_) | Subject::Gpu(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::pci::{PciBus, PciFunction};
    use crate::facts::{Facts, Seen};
    use crate::finding::Finding;

    /// Two NVIDIA GPUs and one of AMD.
    fn facts() -> Facts {
        let function = |vendor: u16| PciFunction {
            vendor: Seen::Got(vendor),
            device: Seen::Got(1),
            class: Seen::Got(0x030000),
            ..PciFunction::default()
        };
        let mut bus = PciBus {
            whole: true,
            ..PciBus::default()
        };
        for (address, vendor) in [
            ("0000:01:00.0", 0x10de),
            ("0000:02:00.0", 0x10de),
            ("0000:03:00.0", 0x1002),
        ] {
            bus.items.insert(address.to_owned(), function(vendor));
        }
        Facts {
            pci: Seen::Got(bus),
            ..Facts::default()
        }
    }

    fn row(name: &'static str, link: Link, blocks: &[&str]) -> IndexRow<'static> {
        let blocks: Vec<String> = blocks.iter().map(|block| format!("{block:?}")).collect();
        let text = format!(
            "name = {name:?}\nlink = {:?}\nseverity = \"error\"\neach = \"gpu\"\nstack = \"none\"\napplies = \"any\"\ntier = 1\nblocks = [{}]",
            link.name(),
            blocks.join(", ")
        );
        let row = IndexRow::new(name, text.leak());
        assert!(row.row().is_some(), "a row of the index");
        row
    }

    fn answer(check: &'static str, link: Link, subject: Subject, found: bool) -> Answer {
        Answer {
            check,
            link,
            subject,
            verdict: if found {
                Finding::new(check).into()
            } else {
                Verdict::cannot_tell("", "")
            },
            severity: if found {
                Severity::Error
            } else {
                Severity::Note
            },
            usual: Severity::Error,
            folded_into: None,
        }
    }

    fn gpu(number: u8) -> Subject {
        Subject::Gpu(format!("0000:{number:02}:00.0"))
    }

    fn folded(mut answers: Vec<Answer>, rows: &[IndexRow]) -> Vec<Option<usize>> {
        let facts = facts();
        let tables = Tables::embedded();
        let view = View::new(&facts, &tables, &[]);
        let rows: Vec<&IndexRow> = answers
            .iter()
            .map(|answer| {
                rows.iter()
                    .find(|row| row.name == answer.check)
                    .expect("a row for each check")
            })
            .collect();
        fold(&mut answers, &rows, &view);
        answers.iter().map(|answer| answer.folded_into).collect()
    }

    #[test]
    fn folding_is_transitive_and_names_the_root() {
        let rows = [
            row("a", Link::Bus, &["b"]),
            row("b", Link::Driver, &["access"]),
            row("c", Link::Access, &[]),
        ];
        let answers = vec![
            answer("a", Link::Bus, gpu(1), true),
            answer("b", Link::Driver, gpu(1), true),
            answer("c", Link::Access, gpu(1), true),
        ];
        assert_eq!(folded(answers, &rows), [None, Some(0), Some(0)]);
    }

    #[test]
    fn another_subject_is_not_folded() {
        let rows = [
            row("a", Link::Bus, &["driver"]),
            row("b", Link::Driver, &[]),
        ];
        let answers = vec![
            answer("a", Link::Bus, gpu(1), true),
            answer("b", Link::Driver, gpu(2), true),
        ];
        assert_eq!(folded(answers, &rows), [None, None]);
    }

    #[test]
    fn what_one_of_two_gpus_has_does_not_count_for_the_stack() {
        let rows = [row("a", Link::Driver, &["b"]), row("b", Link::Access, &[])];
        let stack = || answer("b", Link::Access, Subject::Stack(Stack::Cuda), true);
        let one = vec![answer("a", Link::Driver, gpu(1), true), stack()];
        assert_eq!(folded(one, &rows), [None, None]);
        let both = vec![
            answer("a", Link::Driver, gpu(1), true),
            answer("a", Link::Driver, gpu(2), true),
            stack(),
        ];
        assert_eq!(folded(both, &rows), [None, None, Some(0)]);
    }

    #[test]
    fn an_error_folds_unanswered_questions_of_later_links_only() {
        let rows = [
            row("early", Link::Bus, &[]),
            row("fault", Link::Driver, &[]),
            row("late", Link::Access, &[]),
            row("beside", Link::Health, &[]),
        ];
        let answers = vec![
            answer("early", Link::Bus, gpu(3), false),
            answer("fault", Link::Driver, gpu(3), true),
            answer("late", Link::Access, gpu(3), false),
            answer("beside", Link::Health, gpu(3), false),
        ];
        assert_eq!(folded(answers, &rows), [None, None, Some(1), None]);
        // A finding of a later link that nothing names stays.
        let answers = vec![
            answer("fault", Link::Driver, gpu(3), true),
            answer("late", Link::Access, gpu(3), true),
        ];
        assert_eq!(folded(answers, &rows), [None, None]);
    }

    #[test]
    fn a_link_stands_for_its_checks_of_the_same_vendor() {
        let rows = [
            row("a", Link::Driver, &["runtime"]),
            row("b", Link::Runtime, &[]),
        ];
        let mut about_cuda = answer("a", Link::Driver, Subject::Machine, true);
        about_cuda.verdict = Finding::new("a").about(Some(Stack::Cuda)).into();
        let answers = vec![
            about_cuda,
            answer("b", Link::Runtime, Subject::Stack(Stack::Cuda), true),
            answer("b", Link::Runtime, Subject::Stack(Stack::Rocm), true),
        ];
        assert_eq!(folded(answers, &rows), [None, Some(0), None]);
    }

    #[test]
    fn a_cycle_is_cut_at_the_earlier_link() {
        let rows = [
            row("late", Link::Access, &["soon"]),
            row("soon", Link::Driver, &["late"]),
        ];
        let answers = vec![
            answer("late", Link::Access, gpu(1), true),
            answer("soon", Link::Driver, gpu(1), true),
        ];
        assert_eq!(folded(answers, &rows), [Some(1), None]);
    }

    #[test]
    fn of_several_roots_the_earliest_link_counts() {
        let rows = [
            row("z-driver", Link::Driver, &["c"]),
            row("a-access", Link::Access, &["c"]),
            row("c", Link::Runtime, &[]),
        ];
        let answers = vec![
            answer("a-access", Link::Access, Subject::Machine, true),
            answer("c", Link::Runtime, gpu(1), true),
            answer("z-driver", Link::Driver, gpu(1), true),
        ];
        assert_eq!(folded(answers, &rows), [None, Some(2), None]);
    }

    #[test]
    fn a_root_is_as_loud_as_what_it_explains() {
        let facts = facts();
        let tables = Tables::embedded();
        let view = View::new(&facts, &tables, &[]);
        let rows = [row("a", Link::Access, &["b"]), row("b", Link::Access, &[])];
        let mut answers = vec![
            answer("a", Link::Access, gpu(1), true),
            answer("b", Link::Access, gpu(1), true),
        ];
        answers[0].severity = Severity::Warning;
        fold(&mut answers, &[&rows[0], &rows[1]], &view);
        assert_eq!(answers[0].severity, Severity::Error);
    }

    #[test]
    fn a_check_that_panics_costs_its_answer_alone() {
        let verdict = guarded(|| unreachable!());
        assert!(matches!(verdict, Verdict::CannotTell { .. }));
    }
}
