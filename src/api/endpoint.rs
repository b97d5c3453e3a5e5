//! The types that are made from the table of endpoints: one for each endpoint, any request, any reply,
//! and the rows themselves.

use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wire::*;
use crate::for_each_endpoint;

/// How a model's host or a person reaches an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// By these tools, or these commands.
    By(&'static [&'static str]),
    /// Not at all, and why not.
    Not(&'static str),
}

/// A row of the table of endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The endpoint that this row describes.
    pub which: Which,
    /// The endpoint's purpose in one sentence, which is printed in the document.
    pub sentence: &'static str,
    /// The method of the client that asks it.
    pub name: &'static str,
    /// The path, with its slash.
    pub path: &'static str,
    /// The type of a request; empty where it has no members.
    pub asked: &'static str,
    /// The type of an answer.
    pub answer: &'static str,
    /// The MCP tools that ask it.
    pub tools: Reach,
    /// The commands of the command line that ask it.
    pub commands: Reach,
    /// Whether a request carries contents of files, and is as large as these.
    pub carries_files: bool,
    /// Whether carrying it out may end the proof of its own asker.
    pub changes_proof: bool,
    /// Whether a door of this process may ask it for a caller whose proof has ended.
    pub outlives_proof: bool,
}

/// An endpoint, as a type.
pub trait Endpoint: Send + Sync + 'static {
    /// The members of a request: of the query of a `GET`, of the body of a `POST`.
    type Asked: Clone + Serialize + DeserializeOwned + Send + Sync;
    /// The members of an answer.
    type Answer: Serialize + DeserializeOwned + Send;
    /// The endpoint as a value.
    const WHICH: Which;

    /// How long a request asks the daemon to wait, in milliseconds.
    fn wait_ms(asked: &Self::Asked) -> u64;

    /// The request of these members.
    fn request(asked: Self::Asked) -> Request;

    /// The members of a reply to this endpoint; nothing of a reply to another one.
    fn answer(reply: Reply) -> Option<Self::Answer>;

    /// A request's members as they travel. This and [`Self::read`] are compiled here, once, and not in each crate that asks.
    ///
    /// # Errors
    /// A member that JSON has no form for.
    fn write(asked: &Self::Asked) -> Result<Vec<u8>, serde_json::Error>;

    /// An answer as it has travelled.
    ///
    /// # Errors
    /// What is no such answer.
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
            /// `GET` for questions, `POST` for what changes something or carries a body.
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
            /// The endpoint that it is for.
            pub fn which(&self) -> Which {
                match self { $(Self::$Kind(_) => Which::$Kind,)+ }
            }
        }

        impl Reply {
            /// The answer as it travels.
            ///
            /// # Errors
            /// A member that JSON has no form for.
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
    /// The row of the table that describes this endpoint.
    pub fn row(self) -> &'static Row {
        // The rows stand in the order of the variants, since both are made of the same table.
        &ENDPOINTS[self as usize]
    }

    /// The endpoint at a path.
    pub fn at(path: &str) -> Option<Self> {
        ENDPOINTS.iter().find(|row| row.path == path).map(|row| row.which)
    }
}
