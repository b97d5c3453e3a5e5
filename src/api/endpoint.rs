//! The types that are generated from the table of endpoints: a type for each endpoint, any request, any reply, and
//! the rows of the table.

use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wire::*;
use crate::for_each_endpoint;

/// The ways in which a model's host or a person reaches an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Through these tools or commands.
    By(&'static [&'static str]),
    /// Not at all, for this reason.
    Not(&'static str),
}

/// A row of the table of endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The endpoint that this row describes.
    pub which: Which,
    /// The endpoint's purpose in one sentence, which is printed in the document.
    pub sentence: &'static str,
    /// The client's method that calls the endpoint.
    pub name: &'static str,
    /// The path, with its leading slash.
    pub path: &'static str,
    /// The type of a request; empty if it has no members.
    pub asked: &'static str,
    /// The type of an answer.
    pub answer: &'static str,
    /// The MCP tools that call the endpoint.
    pub tools: Reach,
    /// The commands of the command line that call the endpoint.
    pub commands: Reach,
    /// Whether a request carries contents of files, and can be as large as these.
    pub carries_files: bool,
    /// Whether the request may end the proof of identity of its own caller.
    pub changes_proof: bool,
    /// Whether a door of this process may call it for a caller whose proof has ended.
    pub outlives_proof: bool,
}

/// An endpoint, as a type.
pub trait Endpoint: Send + Sync + 'static {
    /// The members of a request: in the query of a `GET`, in the body of a `POST`.
    type Asked: Clone + Serialize + DeserializeOwned + Send + Sync;
    /// The members of an answer.
    type Answer: Serialize + DeserializeOwned + Send;
    /// The endpoint as a value.
    const WHICH: Which;

    /// Returns how long a request asks the daemon to wait, in milliseconds.
    fn wait_ms(asked: &Self::Asked) -> u64;

    /// Makes the request with these members.
    fn request(asked: Self::Asked) -> Request;

    /// Returns the members of a reply to this endpoint; `None` for a reply to another one.
    fn answer(reply: Reply) -> Option<Self::Answer>;

    /// Serializes a request's members. This and [`Self::read`] are compiled here, once, and not in each crate that calls the endpoint.
    ///
    /// # Errors
    /// A member that JSON cannot express.
    fn write(asked: &Self::Asked) -> Result<Vec<u8>, serde_json::Error>;

    /// Parses an answer.
    ///
    /// # Errors
    /// Bytes that are no such answer.
    fn read(answer: &[u8]) -> Result<Self::Answer, serde_json::Error>;
}

macro_rules! define {
    ($(
        $(#[doc = $sentence:literal])+
        $method:ident $path:literal $name:ident $Kind:ident($($Asked:ident)?) -> $Answer:ty,
        tools $tools:tt, commands $commands:tt $(, $flag:ident)*;
    )+) => {
        /// An endpoint as a value, without the members of a request.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Which { $($(#[doc = $sentence])+ $Kind,)+ }

        impl Which {
            /// Returns `GET` for queries, `POST` for requests that change state or carry a body.
            pub fn method(self) -> Method {
                match self { $(Self::$Kind => Method::$method,)+ }
            }
        }

        /// A request of any endpoint.
        #[derive(Clone)]
        pub enum Request { $($(#[doc = $sentence])+ $Kind(Box<define!(@asked $($Asked)?)>),)+ }

        /// A reply of any endpoint.
        pub enum Reply { $($(#[doc = $sentence])+ $Kind(Box<$Answer>),)+ }

        impl Request {
            /// Returns the endpoint of the request.
            pub fn which(&self) -> Which {
                match self { $(Self::$Kind(_) => Which::$Kind,)+ }
            }
        }

        impl Reply {
            /// Serializes the answer.
            ///
            /// # Errors
            /// A member that JSON cannot express.
            pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
                match self { $(Self::$Kind(it) => serde_json::to_vec(it),)+ }
            }
        }

        /// All endpoints, in the order of the table.
        pub const ENDPOINTS: &[Row] = &[$(Row {
            which: Which::$Kind,
            sentence: concat!($($sentence),+),
            name: stringify!($name),
            path: $path,
            asked: concat!($(stringify!($Asked))?),
            answer: stringify!($Answer),
            tools: define!(@reach $tools),
            commands: define!(@reach $commands),
            carries_files: define!(@has carries_files $($flag)*),
            changes_proof: define!(@has changes_proof $($flag)*),
            outlives_proof: define!(@has outlives_proof $($flag)*),
        },)+];

        /// A type for each endpoint.
        pub mod endpoints {
            $($(#[doc = $sentence])+ #[derive(Clone, Copy, Debug)] pub struct $Kind;)+
        }

        $(impl Endpoint for endpoints::$Kind {
            type Asked = define!(@asked $($Asked)?);
            type Answer = $Answer;
            const WHICH: Which = Which::$Kind;

            fn wait_ms(asked: &Self::Asked) -> u64 {
                define!(@wait asked $($flag)*)
            }

            fn request(asked: Self::Asked) -> Request {
                Request::$Kind(Box::new(asked))
            }

            fn answer(reply: Reply) -> Option<Self::Answer> {
                match reply {
                    Reply::$Kind(it) => Some(*it),
                    _ => None,
                }
            }

            fn write(asked: &Self::Asked) -> Result<Vec<u8>, serde_json::Error> {
                serde_json::to_vec(asked)
            }

            fn read(answer: &[u8]) -> Result<Self::Answer, serde_json::Error> {
                serde_json::from_slice(answer)
            }
        })+
    };
    (@asked) => { () };
    (@asked $Asked:ident) => { $Asked };
    (@reach [$($by:literal),+]) => { Reach::By(&[$($by),+]) };
    (@reach ($why:literal)) => { Reach::Not($why) };
    (@has carries_files carries_files $($rest:ident)*) => { true };
    (@has changes_proof changes_proof $($rest:ident)*) => { true };
    (@has outlives_proof outlives_proof $($rest:ident)*) => { true };
    (@has $wanted:ident $other:ident $($rest:ident)*) => { define!(@has $wanted $($rest)*) };
    (@has $wanted:ident) => { false };
    (@wait $asked:ident waits $($rest:ident)*) => { $asked.wait_ms.unwrap_or(0) };
    (@wait $asked:ident $other:ident $($rest:ident)*) => { define!(@wait $asked $($rest)*) };
    (@wait $asked:ident) => {{
        let _ = $asked;
        0
    }};
}

for_each_endpoint!(define);

impl Which {
    /// Returns the row of the table that describes this endpoint.
    pub fn row(self) -> &'static Row {
        // The rows have the order of the variants, since both come from the same table.
        &ENDPOINTS[self as usize]
    }

    /// Returns the endpoint at a path.
    pub fn at(path: &str) -> Option<Self> {
        ENDPOINTS.iter().find(|row| row.path == path).map(|row| row.which)
    }
}
