//! `Seen`: an answer, or the reason why there is none. Not knowing is a value.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// What a source said when it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Seen<T> {
    /// The source answered.
    Got(T),
    /// Proved not to exist. A failed look-up alone is no proof (see `host`).
    Absent,
    /// Nobody asked, so nothing is known.
    Unasked(Why),
    /// The source was asked and did not answer.
    Failed(Failure),
}

/// Why a source was not asked. A small list, so that a root and its capture compare equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The machine, root or capture at hand does not hold this.
    NotCaptured,
    /// `--quick` leaves this out.
    Quick,
    /// Asking would wake a GPU that sleeps.
    Asleep,
    /// Nothing shows the hardware that this source belongs to.
    NoSuchHardware,
    /// As root the question itself would change the machine.
    RunsAsRoot,
    /// A limit of size, count or time was reached first.
    Limit,
    /// The question itself would leave something behind.
    WouldChange,
}

/// How a source failed to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No answer within the limit; `at` is what was being read or called.
    TimedOut {
        /// Path or call that did not return.
        at: String,
    },
    /// The process that asked died; `how` is the signal or exit status.
    Crashed {
        /// Signal name or exit status.
        how: String,
    },
    /// Refused by the kernel: EACCES or EPERM.
    Denied {
        /// Name of the errno.
        errno: String,
    },
    /// Any other error: an errno name, or what was wrong with the content.
    Error {
        /// Errno name, or words.
        what: String,
    },
}

impl Why {
    /// Every reason with its name in the machine format.
    pub const ALL: [(Why, &'static str); 7] = [
        (Why::NotCaptured, "not-captured"),
        (Why::Quick, "quick"),
        (Why::Asleep, "asleep"),
        (Why::NoSuchHardware, "no-such-hardware"),
        (Why::RunsAsRoot, "runs-as-root"),
        (Why::Limit, "limit"),
        (Why::WouldChange, "would-change"),
    ];

    /// The name in the machine format.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(why, _)| *why == self)
            .map_or("not-captured", |(_, name)| name)
    }

    /// The reason of that name in the machine format.
    pub fn from_name(name: &str) -> Option<Why> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(why, _)| *why)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::NotCaptured => "not recorded here",
            Why::Quick => "left out by --quick",
            Why::Asleep => "the GPU is asleep and was not woken",
            Why::NoSuchHardware => "no hardware that it belongs to",
            Why::RunsAsRoot => "not asked as root",
            Why::Limit => "a limit was reached first",
            Why::WouldChange => "asking would leave files behind",
        })
    }
}

impl Failure {
    /// The name of the errno, or what was wrong, in the source's own words.
    pub fn what(&self) -> &str {
        match self {
            Failure::Denied { errno: what } | Failure::Error { what } => what,
            Failure::TimedOut { .. } => "ETIMEDOUT",
            Failure::Crashed { how } => how,
        }
    }

    /// The failure that an errno name stands for.
    pub fn errno(name: &str) -> Failure {
        match name {
            "EACCES" | "EPERM" => Failure::Denied {
                errno: name.to_owned(),
            },
            _ => Failure::Error {
                what: name.to_owned(),
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::TimedOut { at } => write!(f, "no answer in time at {at}"),
            Failure::Crashed { how } => write!(f, "the process that asked died ({how})"),
            Failure::Denied { errno } => write!(f, "permission denied ({errno})"),
            Failure::Error { what } => write!(f, "could not be read ({what})"),
        }
    }
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Seen::Unasked(Why::NotCaptured)
    }
}

impl<T> Seen<T> {
    /// A failure in words of our own: the content was there and made no sense.
    pub fn error(what: impl Into<String>) -> Self {
        Seen::Failed(Failure::Error { what: what.into() })
    }

    /// The answer, if there is one.
    pub fn got(&self) -> Option<&T> {
        match self {
            Seen::Got(value) => Some(value),
            _ => None,
        }
    }

    /// The answer by value, if there is one.
    pub fn into_got(self) -> Option<T> {
        match self {
            Seen::Got(value) => Some(value),
            _ => None,
        }
    }

    /// Proved not to exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Seen::Absent)
    }

    /// Neither an answer nor a proof of absence.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Seen::Unasked(_) | Seen::Failed(_))
    }

    /// It failed with this error, by the name that the source gives it.
    pub fn says(&self, error: &str) -> bool {
        matches!(self, Seen::Failed(Failure::Error { what }) if what == error)
    }

    /// The same by reference.
    pub fn as_ref(&self) -> Seen<&T> {
        match self {
            Seen::Got(value) => Seen::Got(value),
            Seen::Absent => Seen::Absent,
            Seen::Unasked(why) => Seen::Unasked(*why),
            Seen::Failed(failure) => Seen::Failed(failure.clone()),
        }
    }

    /// Changes an answer, keeps everything else.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Seen<U> {
        self.and_then(|value| Seen::Got(change(value)))
    }

    /// Changes an answer into another `Seen`, keeps everything else.
    pub fn and_then<U>(self, change: impl FnOnce(T) -> Seen<U>) -> Seen<U> {
        match self {
            Seen::Got(value) => change(value),
            Seen::Absent => Seen::Absent,
            Seen::Unasked(why) => Seen::Unasked(why),
            Seen::Failed(failure) => Seen::Failed(failure),
        }
    }

    /// This answer, or where it says nothing the one of another source. A proof of absence counts as said only where
    /// the other source does not answer either.
    pub fn or_else(self, other: impl FnOnce() -> Seen<T>) -> Seen<T> {
        match self {
            Seen::Got(value) => Seen::Got(value),
            first => match other() {
                Seen::Got(value) => Seen::Got(value),
                _ => first,
            },
        }
    }

    /// The first answer; without one, the first that is unknown; else absent. Nobody is asked after an answer.
    pub fn first_of(answers: impl IntoIterator<Item = Seen<T>>) -> Seen<T> {
        let mut result = Seen::Absent;
        for answer in answers {
            match answer {
                Seen::Got(value) => return Seen::Got(value),
                Seen::Absent => {}
                unknown if result.is_absent() => result = unknown,
                _ => {}
            }
        }
        result
    }

    /// Why there is no answer, in words for a report.
    pub fn why(&self) -> String {
        match self {
            Seen::Got(_) => "answered".to_owned(),
            Seen::Absent => "does not exist".to_owned(),
            Seen::Unasked(why) => why.to_string(),
            Seen::Failed(failure) => failure.to_string(),
        }
    }
}

/// One value of a library's answer. In JSON a value that was got stands as it is, and everything else as
/// `{"unknown": ...}`, so that a recorded answer reads like the library's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told<T>(pub Seen<T>);

impl<T> Default for Told<T> {
    fn default() -> Self {
        Told(Seen::default())
    }
}

impl<T> std::ops::Deref for Told<T> {
    type Target = Seen<T>;
    fn deref(&self) -> &Seen<T> {
        &self.0
    }
}

impl<T: Serialize> Serialize for Told<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Seen::Got(value) => value.serialize(serializer),
            other => Unknown { unknown: other }.serialize(serializer),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Told<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // By way of a JSON value, which takes far less code than trying one form after the other for each kind of value.
        let value = serde_json::Value::deserialize(deserializer)?;
        if value.is_null() {
            return Ok(Told::default());
        }
        let told = match Unknown::<Seen<()>>::deserialize(&value) {
            Ok(Unknown { unknown }) => {
                unknown.and_then(|()| Seen::error("the recorded value is of no known form"))
            }
            Err(_) => Seen::Got(super::from_json(&value).map_err(D::Error::custom)?),
        };
        Ok(Told(told))
    }
}

/// How a value that was not got stands in JSON.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Unknown<T> {
    unknown: T,
}

#[cfg(test)]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Told<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Told_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let value = generator.subschema_for::<T>();
        let unknown = generator.subschema_for::<Unknown<Seen<T>>>();
        schemars::json_schema!({ "anyOf": [value, unknown] })
    }
}

/// Several things of one kind, keyed by their natural name. Only where `whole` is true does a missing key mean an absent
/// thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Named<T> {
    /// All there are is here.
    pub whole: bool,
    /// The things by name.
    pub items: BTreeMap<String, T>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named {
            whole: false,
            items: BTreeMap::new(),
        }
    }
}

impl<T> Named<T> {
    /// The thing of that name; absent only where the map is whole.
    pub fn get(&self, name: &str) -> Seen<&T> {
        match self.items.get(name) {
            Some(item) => Seen::Got(item),
            None if self.whole => Seen::Absent,
            None => Seen::Unasked(Why::NotCaptured),
        }
    }
}

impl<T> Seen<Named<T>> {
    /// Looks up a name in a map that may itself be unknown. Where the whole map is proved absent, so is the thing.
    pub fn entry(&self, name: &str) -> Seen<&T> {
        self.as_ref().and_then(|named| named.get(name))
    }

    /// The things that were seen, whether or not these are all.
    pub fn items(&self) -> impl Iterator<Item = (&String, &T)> {
        self.got().into_iter().flat_map(|named| named.items.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_counts() {
        let failed = || Seen::error("EIO");
        let unasked = || Seen::Unasked(Why::Quick);
        assert_eq!(
            Seen::first_of([Seen::Absent, failed(), Seen::Got(1), Seen::Got(2)]),
            Seen::Got(1)
        );
        assert_eq!(
            Seen::<u8>::first_of([Seen::Absent, failed(), unasked(), Seen::Absent]),
            failed()
        );
        assert_eq!(
            Seen::<u8>::first_of([Seen::Absent, Seen::Absent]),
            Seen::Absent
        );
        assert_eq!(Seen::<u8>::first_of([]), Seen::Absent);
    }
}
