//! The table of verbs: for each its answer, the right that a caller needs, the durability of its commit, and either
//! the rule that carries it out or its judgement by policy.
//!
//! Everything that depends on the kind of a command is made from these rows, so that a verb without a rule does not
//! compile.

use serde::{Deserialize, Serialize};

use super::*;
use crate::judged::{HasTurn, Judged, Turn};
use crate::{Answer, Call, Judge, Outbox, Refusal, Scope, State, decide};

/// A typed request that policy has no say over. `Engine::submit` takes any and answers with its reply.
pub trait Verb: Into<Command> {
    /// The reply to the caller once the verb was carried out.
    type Reply: TryFrom<Reply>;
}

/// A typed request that policy has a say over. `Engine::submit_judged` takes any and answers with an
/// [`Answer`], since it may be denied, or wait for approval.
pub trait JudgedVerb: Into<Command> {
    /// The reply to the caller once the verb was carried out.
    type Reply: TryFrom<Reply>;
}

/// The durability that the commit of a verb waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Durability {
    /// Nothing: it only touches memory.
    Unstored,
    /// The kernel: survives a crash or kill -9 of the daemon.
    Commit,
    /// The disk: survives loss of power.
    Durable,
}

/// A row is `Verb => Reply, needs SCOPE, DURABILITY, by RULE;`, where the rule is an expression over the names in the
/// head; or `Verb => Reply, needs SCOPE, DURABILITY, judged TURN;`, where the verb is [`Judged`] and its turn says
/// what a granted command does: it `runs` at once, is `redeemed` by its asker who asks again, or `never_waits`
/// because a rule can only allow or deny it.
macro_rules! verbs {
    (
        rules($state:ident, $judge:ident, $call:ident, $it:ident, $out:ident);
        $(
            $(#[$doc:meta])*
            $verb:ident => $reply:ident, needs $scope:ident, $durability:ident
            $(, by $rule:expr)? $(, judged $turn:ident)?;
        )*
    ) => {
        /// Any verb, as it waits in a queue or for an approval.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum Command { $($(#[$doc])* $verb($verb),)* }

        /// The reply of any verb, before it is converted to the verb's own type.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Reply { $(
            #[doc = concat!("Answer to [`", stringify!($verb), "`].")]
            $reply($reply),
        )* }

        /// A verb without its members, for tables that count verbs.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum VerbName { $($(#[$doc])* $verb,)* }

        impl VerbName {
            /// All verbs, in the order of the table.
            pub const ALL: &'static [VerbName] = &[$(VerbName::$verb,)*];

            /// As rules and the log write it.
            pub fn as_str(self) -> &'static str {
                match self { $(VerbName::$verb => stringify!($verb),)* }
            }
        }

        impl Command {
            /// The verb, without its members.
            pub fn verb(&self) -> VerbName {
                match self { $(Command::$verb(_) => VerbName::$verb,)* }
            }

            /// The right a caller must hold, whatever policy says.
            pub fn scope(&self) -> Scope {
                match self { $(Command::$verb(_) => Scope::$scope,)* }
            }

            /// The verb's name, as rules and the log write it.
            pub fn name(&self) -> &'static str {
                self.verb().as_str()
            }

            /// The durability that the answer must wait for.
            pub fn durability(&self) -> Durability {
                match self { $(Command::$verb(_) => Durability::$durability,)* }
            }

            /// The verb as policy sees it; `None` for verbs that policy has no say over.
            pub(crate) fn judged(&self) -> Option<&dyn Judged> {
                match self { $(Command::$verb($it) => verbs!(@judged $it $($turn)?),)* }
            }

            /// Carries it out by its row.
            pub(crate) fn decide(
                &self,
                $state: &State,
                $judge: &dyn Judge,
                $call: Call<'_>,
                $out: &mut Outbox,
            ) -> Result<Answer<Reply>, Refusal> {
                match self { $(
                    Command::$verb($it) => verbs!(
                        @decide ($state, $judge, $call, self, $it, $out) $reply $(by $rule)? $(judged $turn)?
                    ),
                )* }
            }
        }

        $(
            impl From<$verb> for Command {
                fn from(verb: $verb) -> Command { Command::$verb(verb) }
            }
            impl TryFrom<Reply> for $reply {
                type Error = Reply;
                fn try_from(reply: Reply) -> Result<Self, Reply> {
                    match reply { Reply::$reply(it) => Ok(it), other => Err(other) }
                }
            }
            verbs!(@verb $verb $reply $($turn)?);
        )*
    };
    (@judged $it:ident $turn:ident) => { Some($it) };
    (@judged $it:ident) => {{
        let _ = $it;
        None
    }};
    (@decide ($state:ident, $judge:ident, $call:ident, $all:ident, $it:ident, $out:ident) $reply:ident by $rule:expr) => {
        $rule.map(|reply| Answer::Done(Reply::$reply(reply)))
    };
    (@decide ($state:ident, $judge:ident, $call:ident, $all:ident, $it:ident, $out:ident) $reply:ident judged $turn:ident) => {
        decide::by_policy($state, $judge, $call, $all, $it, $out)
    };
    (@verb $verb:ident $reply:ident $turn:ident) => {
        impl JudgedVerb for $verb { type Reply = $reply; }
        impl HasTurn for $verb {
            fn turn(&self) -> Turn<'_> { verbs!(@turn self $turn) }
        }
    };
    (@verb $verb:ident $reply:ident) => {
        impl Verb for $verb { type Reply = $reply; }
    };
    (@turn $it:ident runs) => { Turn::Runs($it) };
    (@turn $it:ident redeemed) => { Turn::Redeemed($it) };
    (@turn $it:ident never_waits) => { Turn::NeverWaits };
}

verbs! {
    rules(state, judge, call, it, out);

    /// Make oneself known, with a version check.
    Register => Registered, needs Join, Commit, by state.register(&call, it, out);
    /// Take the next message of one's queue.
    CollectMail => Collected, needs Join, Unstored, by Ok(state.collect_mail(&call, it, out));
    /// Say whether a collected message arrived.
    SettleMail => Settled, needs Join, Commit, by state.settle_mail(&call, it, out);
    /// Hand work to a worker.
    Delegate => Delegated, needs Delegate, Durable, judged runs;
    /// Say how work is going.
    ReportTask => Reported, needs Work, Durable, by state.report(call.now, call.who, it, call.past.as_ref(), out);
    /// Acknowledge a notification about a task.
    AckTask => Acked, needs Coordinate, Commit, by state.ack(call.who, it, call.past.as_ref(), out);
    /// Take back a task that the caller has delegated.
    CancelTask => Cancelled, needs Delegate, Durable, by state.cancel(call.now, call.who, it, call.past.as_ref(), out);
    /// Say something to the agent that works on a task.
    SayToTask => SaidToTask, needs Delegate, Durable, by state.say_to_task(call.now, call.who, it, call.past.as_ref(), out);
    /// Say in which session a run is.
    NoteSession => SessionNoted, needs Host, Durable, by state.note_session(it, out);
    /// Begin a run again in its agent's session.
    ResumeRun => RunResumed, needs Host, Durable, by state.resume_run(call.now, it, out);
    /// Take what waits for the agent of a task.
    TakeSayings => SayingsTaken, needs Host, Commit, by state.take_sayings(it, out);
    /// Say that an agent got what was said to it.
    NoteSaid => SaidNoted, needs Host, Commit, by state.note_said(call.now, it, out);
    /// Grant or deny a parked command.
    AnswerApproval => Answered, needs Approve, Durable, judged never_waits;
    /// Take a picture of the screen.
    TakeScreenshot => Captured, needs Delegate, Durable, judged runs;
    /// Use a tool of one's own host.
    AskPermission => Permitted, needs Delegate, Durable, judged redeemed;
    /// Take back a question about a tool of one's own host.
    WithdrawPermission => PermissionWithdrawn, needs Delegate, Commit, by Ok(state.withdraw_permission(call.who, it, out));
    /// Go by a name for people.
    NameAgent => AgentNamed, needs Join, Commit, by state.agents.name(call.now, call.who, it, out);
    /// Take or refresh a lock on a symbol.
    AcquireLock => Locked, needs Coordinate, Commit, by state.acquire(call.now, call.who, it, out);
    /// Take what a task's worker needs, or wait for it.
    TakeNeeds => NeedsTaken, needs Host, Commit, by state.take_needs(call.now, it, out);
    /// Take or renew leases on what a write touches.
    HoldPlaces => PlacesHeld, needs Coordinate, Commit, by state.hold_places(call.now, call.who, it, out);
    /// Release a lock before its time is up.
    ReleaseLock => LockReleased, needs Coordinate, Commit, by state.release(call.now, call.who, it, out);
    /// Wait for a lock no longer.
    LeaveQueue => QueueLeft, needs Coordinate, Commit, by state.leave_queue(call.who, it, out);
    /// End a session: hold nothing any more.
    Leave => HasLeft, needs Coordinate, Commit, by Ok(state.leave(call.now, call.who, it, out));
    /// Free locks whose holders are gone.
    ReapLocks => LocksReaped, needs Host, Commit, by Ok(state.reap(it, out));
    /// Free the leases of work that is committed.
    FreeCommitted => CommittedFreed, needs Host, Commit, by Ok(state.free_committed(it, out));
    /// Let locks follow files that were renamed.
    FollowLocks => LocksFollowed, needs Host, Commit, by Ok(state.follow_locks(it, out));
    /// Announce a change of files and symbols.
    DeclareIntent => Declared, needs Coordinate, Commit, by state.declare(call.now, call.who, it, out);
    /// Say how an announced change goes on.
    UpdateIntent => IntentUpdated, needs Coordinate, Commit, by state.update_intent(call.now, call.who, it, out);
    /// Follow symbols that have moved within their files.
    RefreshIntents => IntentsRefreshed, needs Host, Commit, by Ok(state.refresh_intents(it, out));
    /// Offer a contract on a signature.
    ProposeContract => ContractProposed, needs Coordinate, Durable, by state.propose_contract(call.now, call.who, it, out);
    /// Accept or reject a contract.
    AnswerContract => ContractAnswered, needs Coordinate, Durable, by state.answer_contract(call.now, call.who, it, out);
    /// Take back an offer of a contract, or end one as a person.
    WithdrawContract => ContractWithdrawn, needs Coordinate, Durable, by state.withdraw_contract(call.who, it, out);
    /// Let contracts follow files that were renamed.
    FollowContracts => ContractsFollowed, needs Host, Durable, by Ok(state.follow_contracts(it, out));
    /// Publish a message to other agents.
    Publish => Published, needs Coordinate, Commit, by state.publish(call.now, call.who, it, out);
    /// Take back a question for whose answer a program has waited.
    WithdrawQuestion => QuestionWithdrawn, needs Host, Commit, by Ok(state.withdraw_question(it, out));
    /// Publish a message once more that is in force already.
    Republish => Republished, needs Coordinate, Commit, by Ok(state.republish(call.now, call.who, it, out));
    /// Give an agent an inbox before it has said anything.
    AddressAgent => AgentAddressed, needs Coordinate, Commit, by state.address_agent(call.now, call.who, it, out);
    /// Restart the audit log of messages.
    BeginLog => LogBegun, needs Operate, Commit, by Ok(state.begin_log(it, out));
    /// Announce oneself to the crew.
    JoinCrew => CrewJoined, needs Join, Commit, by state.join_crew(call.now, call.who, it, out);
    /// Leave the crew, and free one's claims.
    LeaveCrew => CrewLeft, needs Join, Commit, by Ok(state.leave_crew(call.who, it, out));
    /// Say that one is still there.
    BeatCrew => CrewBeaten, needs Join, Commit, by state.beat_crew(call.now, call.who, it, out);
    /// Say what one is at.
    MoveMember => MemberMoved, needs Join, Commit, by state.move_member(call.now, call.who, it, out);
    /// Name the lead of the crew.
    AppointLead => LeadAppointed, needs Operate, Commit, by state.appoint_lead(call.who, it, out);
    /// Claim a whole file.
    ClaimFile => FileClaimed, needs Coordinate, Commit, by state.claim_file(call.now, call.who, it, out);
    /// Release a claimed file.
    ReleaseFile => FileReleased, needs Coordinate, Commit, by Ok(state.release_file(call.now, call.who, it, out));
    /// End another agent's intent.
    EndIntent => IntentEnded, needs Operate, Commit, by state.end_intent(call.now, call.who, it, out);
    /// Free a file that any agent has.
    FreeClaim => ClaimFreed, needs Operate, Commit, by state.free_claim_by_force(call.who, it, out);
    /// Take from an agent all that it holds.
    ReleaseAgent => AgentReleased, needs Operate, Commit, by state.release_agent(call.now, call.who, it, out);
    /// Lock a file, or give it free.
    LockFile => FileLocked, needs Coordinate, Commit, by state.lock_file(call.now, call.who, it, out);
    /// Want something done by one of the crew.
    MakeAssignment => AssignmentMade, needs Coordinate, Commit, by state.make_assignment(call.now, call.who, it, out);
    /// Say how an assignment goes on.
    MoveAssignment => AssignmentMoved, needs Coordinate, Commit, by state.move_assignment(call.now, call.who, it, out);
    /// Hand work over to one of the crew.
    OfferTransfer => TransferOffered, needs Coordinate, Commit, by state.offer_transfer(call.now, call.who, it, out);
    /// Go on with work that was handed over, or do not.
    AnswerTransfer => TransferAnswered, needs Coordinate, Commit, by Ok(state.answer_transfer(call.now, call.who, it, out));
    /// Put something on the timeline.
    TakeNote => NoteTaken, needs Coordinate, Commit, by state.take_note(call.now, call.who, it, out);
    /// Put what another daemon has kept on the timeline.
    TakeNotes => NotesTaken, needs Operate, Commit, by state.take_notes(it, out);
    /// Say which files have changed.
    SeeFiles => FilesSeen, needs Host, Commit, by Ok(state.see_files(call.now, it, out));
    /// Ask for something that takes a while.
    OpenJob => JobOpened, needs Delegate, Durable, by state.open_job(call.now, call.who, it, out);
    /// Say how far a job is.
    MoveJob => JobMoved, needs Host, Commit, by state.move_job(call.now, it, out);
    /// Say how a job has ended.
    EndJob => JobEnded, needs Host, Durable, by state.end_job(call.now, it, out);
    /// Say what a job had brought about that was over before its last run was.
    KeepResult => ResultKept, needs Host, Durable, by state.keep_result(it, out);
    /// Take back a job that the caller has opened.
    CancelJob => JobCancelled, needs Delegate, Durable, by state.cancel_job(call.now, call.who, it, out);
    /// Say what one thinks of a job's outcome.
    NoteFeedback => FeedbackNoted, needs Delegate, Commit, by state.note_feedback(it, out);
    /// Have a worker begin nothing, or begin again.
    SwitchWorker => WorkerSwitched, needs Delegate, Durable, by state.switch_worker(call.who, it, out);
    /// Write files in the workspace.
    ApplyFiles => ApplyBegun, needs Delegate, Durable, judged redeemed;
    /// Say which files were written.
    TellApplied => AppliedTold, needs Host, Commit, by Ok(state.tell_applied(call.now, it, call.past.as_ref(), out));
    /// Say how the writing of files has ended.
    EndApply => ApplyEnded, needs Host, Durable, by Ok(state.end_apply(it, out));
    /// Forget what a run has changed in its private copy.
    DiscardChanges => ChangesDiscarded, needs Delegate, Durable, by state.discard_changes(call.now, call.who, it, call.past.as_ref(), out);
    /// Say that what a run has changed is merged.
    NoteMerged => MergedNoted, needs Host, Commit, by state.note_merged(call.now, it, call.past.as_ref(), out);
    /// Put branches into the queue of merges.
    QueueMerges => MergesQueued, needs Delegate, Durable, judged redeemed;
    /// Take branches out of the queue of merges.
    RemoveMerges => MergesRemoved, needs Delegate, Durable, by state.remove_merges(call.who, it, out);
    /// Merge what waits in the queue.
    RunMerges => MergesBegun, needs Operate, Durable, by state.run_merges(call.who, it, out);
    /// Say how far a merge is.
    MoveMerge => MergeMoved, needs Host, Durable, by state.move_merge(call.now, it, out);
    /// Mint a token, whose bearer speaks as an agent.
    MintToken => TokenMinted, needs Join, Durable, judged never_waits;
    /// End tokens before their time is up.
    RevokeTokens => TokensRevoked, needs Join, Durable, by state.revoke_tokens(call.who, it, out);
    /// Put a passkey on record.
    AddPasskey => PasskeyAdded, needs Operate, Durable, by state.add_passkey(call.now, call.who, it, out);
    /// Have a passkey count no more.
    RevokePasskey => PasskeyRevoked, needs Operate, Durable, by state.revoke_passkey(call.now, call.who, it, out);
    /// Give up all passkeys.
    ResetPasskeys => PasskeysReset, needs Operate, Durable, by state.reset_passkeys(call.now, call.who, it, out);
    /// Keep in mind how the list of passkeys stands.
    NotePasskeyList => PasskeyListNoted, needs Operate, Durable, by state.note_passkey_list(call.who, it, out);
    /// Put on record that a person has signed a verb, which is carried out next.
    SayWord => WordSaid, needs Operate, Durable, by state.say_word(call.now, call.who, it, out);
    /// Have a browser told.
    AddPush => PushAdded, needs Operate, Durable, by state.add_push(call.now, call.who, it, out);
    /// Remove a browser, which then gets no more notices.
    RemovePush => PushRemoved, needs Operate, Durable, by state.remove_push(call.who, it, out);
    /// Tell a browser of a question once more, later.
    SnoozePush => PushSnoozed, needs Operate, Commit, by state.snooze_push(call.now, call.who, it, out);
    /// Give the user of a host a role.
    SetUser => UserSet, needs Operate, Durable, by state.set_user(call.who, it, out);
    /// Take an open task for this host.
    TakeTask => TaskTaken, needs Host, Durable, by state.take_task(judge, &call, it, out);
    /// A worker process was confined and is about to run.
    BeginRun => Begun, needs Host, Durable, by state.begin_run(call.now, it, out);
    /// Report on the files of a task.
    NoteFiles => FilesNoted, needs Host, Commit, by state.note_files(call.now, it, call.past.as_ref(), out);
    /// A picture of the screen is about to be taken.
    BeginCapture => CaptureBegun, needs Host, Commit, by state.begin_capture(call.now, judge, it, out);
    /// A picture of the screen was taken, or was not.
    EndCapture => CaptureEnded, needs Host, Durable, by Ok(state.end_capture(call.now, it, out));
    /// Say what a run's calls to models have used.
    NoteCalls => CallsNoted, needs Host, Commit, by state.note_calls(call.now, it, call.past.as_ref(), out);
    /// Go on with what a budget has nearly used up.
    GoOn => GoesOn, needs Host, Durable, judged redeemed;
    /// A worker process is gone, with what it left.
    EndRun => Ended, needs Host, Durable, by Ok(state.end_run(call.now, it, call.past.as_ref(), out));
    /// An owed effect needs nothing more.
    SettleEffect => EffectSettled, needs Host, Commit, by Ok(it.settle(out));
    /// Put something that happened outside the core on record.
    Record => Recorded, needs Operate, Durable, by Ok(it.put(out));
}
