//! What a check found: a cause, evidence, why it matters, how to mend it. Pure data; `report/` renders it.

pub use crate::terms::Severity;

use crate::facts::Seen;
use crate::fix::FixCall;
use crate::terms::Stack;
use serde::{Deserialize, Serialize};

/// How sure the evidence makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The evidence points there; something else would look alike.
    Likely,
    /// The evidence proves it.
    Certain,
}

/// One thing that was seen, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Path, call or variable: where anyone can look again.
    pub source: String,
    /// What stands there.
    pub says: String,
}

/// One answer that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong, in one line without a full stop.
    pub title: String,
    /// Which of the check's causes.
    pub cause: Option<&'static str>,
    /// Where it differs from the check's usual severity.
    pub severity: Option<Severity>,
    /// The stack that a finding about the machine concerns.
    pub stack: Option<Stack>,
    /// For a finding about a stack: the keys of the GPUs that it keeps from working, where that is not all of them. None:
    /// the whole stack. Empty: no GPU of this user, only an NPU or a service.
    pub gpus: Option<Vec<String>>,
    /// How sure.
    pub confidence: Confidence,
    /// What was seen.
    pub evidence: Vec<Evidence>,
    /// Why it matters here, in one or two sentences.
    pub why: String,
    /// How to mend it, best first; empty: no fix is known.
    pub fixes: Vec<FixCall>,
}

impl Finding {
    /// A finding, certain until said otherwise.
    pub fn new(title: impl Into<String>) -> Finding {
        Finding {
            title: title.into(),
            cause: None,
            severity: None,
            stack: None,
            gpus: None,
            confidence: Confidence::Certain,
            evidence: Vec::new(),
            why: String::new(),
            fixes: Vec::new(),
        }
    }

    /// It keeps no GPU of this user from working.
    pub fn is_of_no_gpu(&self) -> bool {
        self.gpus.as_ref().is_some_and(Vec::is_empty)
    }

    /// Adds what was seen at a path, in a call or in a variable.
    #[must_use]
    pub fn saw(mut self, source: impl Into<String>, says: impl Into<String>) -> Finding {
        self.evidence.push(Evidence {
            source: source.into(),
            says: says.into(),
        });
        self
    }

    /// Adds an answer in its own words: the value, "does not exist", or why there is none.
    #[must_use]
    pub fn saw_answer<T: ToString>(self, source: impl Into<String>, answer: &Seen<T>) -> Finding {
        let says = answer
            .got()
            .map_or_else(|| answer.why(), ToString::to_string);
        self.saw(source, says)
    }

    /// Which of the check's causes, one of the names in the index.
    #[must_use]
    pub fn cause(mut self, cause: &'static str) -> Finding {
        self.cause = Some(cause);
        self
    }

    /// A severity other than the check's usual one.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Finding {
        self.severity = Some(severity);
        self
    }

    /// The stack that a finding about the machine concerns: its want decides how loud it is.
    #[must_use]
    pub fn about(mut self, stack: Option<Stack>) -> Finding {
        self.stack = stack;
        self
    }

    /// The GPUs that a finding about a stack keeps from working, where others of the stack work.
    #[must_use]
    pub fn only_gpus(mut self, keys: Vec<String>) -> Finding {
        self.gpus = Some(keys);
        self
    }

    /// The GPUs work all the same, slower or at a risk: it takes nothing from their readiness.
    #[must_use]
    pub fn works_all_the_same(self) -> Finding {
        self.only_gpus(Vec::new())
    }

    /// The evidence points there, no more.
    #[must_use]
    pub fn likely(mut self) -> Finding {
        self.confidence = Confidence::Likely;
        self
    }

    /// Why it matters on this machine.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    /// Adds a way to mend it: a recipe of `data/fixes.toml` with its arguments.
    #[must_use]
    pub fn fix(mut self, fix: FixCall) -> Finding {
        self.fixes.push(fix);
        self
    }
}
