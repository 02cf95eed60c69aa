//! Checks: one question each, asked of one kind of subject. Pure; a check never looks at another one (`chain.rs` does).

pub use crate::terms::Link;

use crate::finding::{Finding, Severity};
use crate::tables::Tables;
use crate::view::{Environment, Gpu, Stack, View};

/// The answer of a check about one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Looked at, and right; with what was seen.
    Fine(String),
    /// The question does not arise for this subject.
    NotHere,
    /// The evidence is not there.
    CannotTell {
        /// What was missing.
        why: String,
        /// What would tell: a command or a file, in words.
        would_tell: String,
    },
    /// Something is wrong.
    Found(Box<Finding>),
}

impl Verdict {
    /// Right, and what shows it.
    pub fn fine(says: impl Into<String>) -> Verdict {
        Verdict::Fine(says.into())
    }

    /// The evidence is missing, and what would tell.
    pub fn cannot_tell(why: impl Into<String>, would_tell: impl Into<String>) -> Verdict {
        Verdict::CannotTell {
            why: why.into(),
            would_tell: would_tell.into(),
        }
    }
}

/// Of answers about the parts of one subject the one that matters most: a finding, then what cannot be told, then what is fine.
pub fn worst(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::NotHere => 0,
        Verdict::Fine(_) => 1,
        Verdict::CannotTell { .. } => 2,
        Verdict::Found(_) => 3,
    };
    verdicts.fold(Verdict::NotHere, |worst, next| {
        if rank(&next) > rank(&worst) {
            next
        } else {
            worst
        }
    })
}

impl From<Finding> for Verdict {
    fn from(finding: Finding) -> Verdict {
        Verdict::Found(Box::new(finding))
    }
}

/// Whom a check is asked about, with the function that answers.
#[derive(Clone, Copy)]
pub enum Ask {
    /// Every physical GPU of the vendors that the index names.
    Gpu(fn(&Gpu, &View, &Tables) -> Verdict),
    /// Every compute stack of this machine that the index names.
    Stack(fn(Stack, &View, &Tables) -> Verdict),
    /// Every environment that is built for a stack of the vendors that the index names.
    Environment(fn(&Environment, &View, &Tables) -> Verdict),
    /// The machine, once.
    Machine(fn(&View, &Tables) -> Verdict),
}

/// A check as its file declares it. Vendors, stack and `blocks` come from the index (`data/checks.toml`).
pub struct Check {
    /// The stable name.
    pub name: &'static str,
    /// Where in the chain.
    pub link: Link,
    /// Usual severity.
    pub severity: Severity,
    /// Whom to ask about.
    pub ask: Ask,
    /// The doc comment of the declaration: a first sentence, then sections.
    pub explanation: &'static str,
    /// Causes of the index that the check does not look for yet.
    pub later: &'static [&'static str],
}

/// Declares the check of a file: its doc comment is what `gpucheck explain` prints. `later ["cause"]` behind the function
/// names causes of the index that it does not look for yet.
#[macro_export]
macro_rules! check {
    ($(#[doc = $line:expr])+ $name:literal, $link:ident, $severity:ident, each $subject:ident, $run:path $(, later [$($later:literal),+])?) => {
        /// The check of this file.
        pub const CHECK: $crate::check::Check = $crate::check::Check {
            name: $name,
            link: $crate::check::Link::$link,
            severity: $crate::finding::Severity::$severity,
            ask: $crate::check::Ask::$subject($run),
            explanation: concat!($($line, "\n",)+),
            later: &[$($($later),+)?],
        };
    };
}
