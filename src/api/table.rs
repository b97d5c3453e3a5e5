//! The table of endpoints.
//!
//! A row is `METHOD "path" client_method Endpoint(Request) -> Answer, tools REACH, commands REACH, flags;`. A `GET` takes the members
//! of its request as a query, a `POST` as a body of JSON. `REACH` is the list of the MCP tools, or of the commands, that ask the
//! endpoint, or the reason in brackets why none does. Flags are:
//!
//! - `waits`: the request has `wait_ms`, for which the daemon may hold the answer back;
//! - `carries_files`: the request has contents of files, and is as large as these;
//! - `changes_proof`: carrying it out may end the proof of its own asker, who is answered nevertheless;
//! - `outlives_proof`: a door of this process may ask it for a caller whose proof has ended.

/// Hands the table to a macro.
#[macro_export]
macro_rules! for_each_endpoint {
    ($with:ident) => {
        $with! {
            /// Says what the daemon is, where its doors are, and how much it has to do.
            GET "/about" about About() -> About,
                tools ["workers_list"], commands ["daemon status", "daemon start", "doctor", "notify list", "web setup"];
            /// Says in numbers how the daemon is at work, and what a person should look at.
            GET "/health" health Health() -> Health,
                tools ("a person looks after the daemon"), commands ["daemon status"];
            /// Counts what the daemon does, in the form from which Prometheus' text is made.
            GET "/metrics" metrics Metrics() -> Metrics,
                tools ("a person looks after the daemon"), commands ["daemon metrics"];
            /// Lists the rules in force, and says what they would say to a request that is only thought of.
            GET "/rules" rules Rules(RulesQuery) -> Rules,
                tools ("a model asks for what it wants done, and is told what the rules say"),
                commands ("`provost policy explain` reads the rules' files, also where no daemon runs");
            /// Says what other rules would have decided of the requests that are on record.
            POST "/replay-rules" replay_rules ReplayRules(ReplayRules) -> RulesReplayed,
                tools ("a person writes the rules"), commands ("`provost policy diff` reads the store, also where no daemon runs");
            /// Names the agent as which the caller speaks.
            GET "/who-am-i" who_am_i WhoAmI() -> Me,
                tools ["delegate"], commands ["hook run"];

            /// Has work done by a worker, as far as the rules allow it.
            POST "/delegate" delegate Delegate(Delegate) -> Delegated,
                tools ["delegate", "devit_delegate"], commands ["task delegate", "agent try"];
            /// Takes a picture of the screen, as far as the rules allow it.
            POST "/screenshot" screenshot Screenshot(Screenshot) -> Delegated,
                tools ["screenshot", "devit_screenshot"], commands ["screenshot take"];
            /// Reads a picture that the caller has had taken.
            GET "/picture" picture Picture(PictureQuery) -> Picture,
                tools ["screenshot"], commands ("`provost screenshot take` prints where the picture lies");
            /// Lists tasks.
            GET "/tasks" tasks Tasks(TasksQuery) -> Tasks,
                tools ["task_status", "devit_orchestration_status"], commands ["task list", "daemon status"];
            /// Reads a page of the tasks that pass a filter, with how many there are in each state.
            GET "/task-page" task_page TaskPage(TaskPageQuery) -> TaskPage,
                tools ("`task_status` lists tasks"), commands ["task list"];
            /// Reads one task, at once or when it changes.
            GET "/task" task Task(TaskQuery) -> Task,
                tools ["task_status", "task_wait", "devit_task_result"], commands ["task show", "task delegate"], waits;
            /// Reads one task of the caller's, at once or when it changes.
            GET "/my-task" my_task MyTask(MyTaskQuery) -> Task,
                tools ["delegate"], commands ("`provost task show` reads any task"), waits;
            /// Lists the tasks that the caller has asked for.
            GET "/my-tasks" my_tasks MyTasks(MyTasksQuery) -> MyTasks,
                tools ("MCP's own tasks/list answers with it"), commands ["acp serve"];
            /// Reads what is kept of a turn of the caller's editor with an agent in its jail.
            GET "/my-turn" my_turn MyTurn(MyTurnQuery) -> MyTurn,
                tools ("an editor has the session"), commands ["acp serve"];
            /// Reads what a task's worker has written since a position.
            GET "/output" output Output(OutputQuery) -> Output,
                tools ["task_output"], commands ["journal show", "task delegate"], waits;
            /// Reads what the workers of a job have written since a position.
            GET "/job-log" job_log JobLog(JobLogQuery) -> JobLog,
                tools ("jobs belong to editors, which read their logs at their own door"), commands ["journal show"], waits;
            /// Sums what runs say that they have used.
            GET "/cost" cost Cost(CostQuery) -> Costs,
                tools ("`task_status` says what a task has used; sums are for the one who pays"), commands ["cost show"];
            /// Ends a task.
            POST "/cancel-task" cancel Cancel(Cancel) -> TaskState,
                tools ["task_cancel"], commands ["task cancel"];
            /// Says something to the agent that works on a task.
            POST "/say-to-task" say SayToTask(SayToTask) -> Said,
                tools ["task_say"], commands ["task say"];
            /// Reports on a task, or acknowledges its end.
            POST "/report-task" report Report(Report) -> TaskState,
                tools ["notify", "devit_notify"], commands ["task report"];
            /// Takes the next task for the caller as a polling worker.
            POST "/take-work" take_work TakeWork(TakeWork) -> Work,
                tools ["devit_poll_tasks"], commands ("a polling worker is a program, and speaks MCP or DevIt"), waits;

            /// Lists the approvals that wait for an answer.
            GET "/approvals" approvals Approvals() -> Vec<Approval>,
                tools ["approvals_list"], commands ["approval list", "daemon status"];
            /// Answers an approval.
            POST "/answer-approval" answer AnswerApproval(Answer) -> Answered,
                tools ["approval_decide"], commands ["approval approve", "approval deny"];
            /// Answers an approval for the person at the caller's host.
            POST "/host-answer" host_answer HostAnswer(HostAnswer) -> Answered,
                tools ("the dialog of the host itself asks it"), commands ("`provost approval approve` answers for a person at a terminal");
            /// Gives the key that seals dialogs which the caller's host carries along.
            GET "/dialog-key" dialog_key DialogKey() -> DialogKey,
                tools ("the dialog of the host itself asks it"), commands ("a terminal needs no dialog of a host");
            /// Shows one waiting approval as the text whose digest a passkey signs.
            GET "/approval" approval ApprovalView(ApprovalQuery) -> ApprovalView,
                tools ("a page shows it to the person who signs"), commands ("`provost approval list` shows approvals at a terminal");
            /// Makes a challenge for a word that a passkey is to sign.
            POST "/word-challenge" word_challenge WordChallenge(WordChallenge) -> Challenge,
                tools ("a person signs, in a browser"), commands ("a person signs, in a browser");
            /// Carries out what a passkey has signed.
            POST "/signed-word" signed_word SignedWord(SignedWord) -> WordDone,
                tools ("a person signs, in a browser"), commands ("a person signs, in a browser");
            /// Lists passkeys.
            GET "/passkeys" passkeys Passkeys() -> Passkeys,
                tools ("a person has passkeys"), commands ["passkey list", "doctor"];
            /// Makes a code with which one passkey can be enrolled.
            POST "/passkey-code" passkey_code PasskeyCode(PasskeyCode) -> PasskeyCodeMade,
                tools ("a person has passkeys"), commands ["passkey add"];
            /// Begins to enrol a passkey, with a code.
            POST "/begin-passkey" begin_passkey BeginPasskey(BeginPasskey) -> NewPasskey,
                tools ("a person has passkeys"), commands ("a browser makes passkeys");
            /// Takes a new passkey, which is to sign once before it counts.
            POST "/finish-passkey" finish_passkey FinishPasskey(FinishPasskey) -> Challenge,
                tools ("a person has passkeys"), commands ("a browser makes passkeys");
            /// Takes the signatures by which a new passkey counts.
            POST "/confirm-passkey" confirm_passkey ConfirmPasskey(ConfirmPasskey) -> Passkey,
                tools ("a person has passkeys"), commands ("a browser makes passkeys");
            /// Has a new passkey wait until a known one has signed for it at another page.
            POST "/hold-passkey" hold_passkey HoldPasskey(HoldPasskey) -> PasskeyHeld,
                tools ("a person has passkeys"), commands ("a browser makes passkeys");
            /// Takes the signature of a known passkey for the one that waits.
            POST "/vouch-passkey" vouch_passkey VouchPasskey(VouchPasskey) -> Passkey,
                tools ("a person has passkeys"), commands ("a browser makes passkeys");
            /// Revokes a passkey, for a person at a terminal.
            POST "/revoke-passkey" revoke_passkey RevokePasskey(RevokePasskey) -> Passkey,
                tools ("a person has passkeys"), commands ["passkey revoke"];
            /// Gives up all passkeys, for a person at a terminal.
            POST "/reset-passkeys" reset_passkeys ResetPasskeys() -> PasskeysReset,
                tools ("a person has passkeys"), commands ["passkey reset"];
            /// Lists browsers that are signed in to the page, and invitations that wait.
            GET "/web-sessions" web_sessions WebSessions() -> Vec<WebSession>,
                tools ("a person signs in"), commands ["web session list"];
            /// Ends what a browser is signed in with, or an invitation.
            POST "/end-web-session" end_web_session EndWebSession(EndWebSession) -> Vec<WebSession>,
                tools ("a person signs in"), commands ["web session end"];
            /// Makes a link for a browser without a passkey, which then sees states alone; for a person at a terminal.
            POST "/invite-reader" invite_reader InviteReader(InviteReader) -> Invitation,
                tools ("a person invites people"), commands ["web invite"];
            /// Asks whether a tool of the caller's host may be used.
            POST "/ask-permission" ask_permission AskPermission(AskPermission) -> Permission,
                tools ("the host's hook asks before a tool runs"), commands ["hook run"], waits;

            /// Takes a lock, or renews it.
            POST "/lock" lock Lock(TakeLock) -> Locked,
                tools ["lock_acquire", "work_begin"], commands ["lock acquire", "lock port", "lock run"], waits;
            /// Gives a lock back.
            POST "/unlock" unlock Unlock(Unlock) -> Lock,
                tools ["lock_release", "work_end"], commands ["lock release"];
            /// Lists locks, and the agents that wait for one.
            GET "/locks" locks Locks(Whose) -> Locks,
                tools ["locks_list"], commands ["lock list"];
            /// Says who waits for what: locks, resources, approvals, answers, tasks, handoffs and contracts.
            GET "/waits" waits Waits() -> Waits,
                tools ("`locks_list` says who waits for locks; the rest is for people"), commands ["wait list"];
            /// Has an agent wait no longer for a lock or a resource.
            POST "/end-wait" end_wait EndWait(EndWait) -> Done,
                tools ("a person ends waits of agents"), commands ["wait end"];
            /// Gives back all locks of the caller, and ends its intents when asked to.
            POST "/leave" leave Leave(Leave) -> Left,
                tools ("a host's session ends by itself"), commands ["adapter run", "hook run"];
            /// Gives back what was taken in the session that the caller's connection is for.
            POST "/end-session" end_session EndSession() -> SessionEnded,
                tools ("the door for hosts over HTTP asks it when a session ends"),
                commands ("only the daemon's own doors name a session"), outlives_proof;
            /// Takes from an agent all that it holds, waits for and has announced.
            POST "/release-agent" release_agent ReleaseAgent(ReleaseAgent) -> AgentReleased,
                tools ("a person takes from agents"), commands ["agent release"];
            /// Declares an intent.
            POST "/declare" declare Declare(Declare) -> Declared,
                tools ["intent_declare", "work_begin"], commands ["intent declare"];
            /// Says what a change would collide with.
            POST "/check-conflicts" check_conflicts CheckConflicts(CheckConflicts) -> Conflicts,
                tools ["conflicts_check"], commands ("`provost intent declare` shows conflicts, and `provost file check` checks files");
            /// Lists intents.
            GET "/intents" intents Intents(Whose) -> Vec<Intent>,
                tools ["intents_list"], commands ["intent list"];
            /// Moves an intent on.
            POST "/update-intent" update_intent UpdateIntent(UpdateIntent) -> Intent,
                tools ["intent_update", "work_end"], commands ["intent update"];
            /// Proposes a contract.
            POST "/propose-contract" propose ProposeContract(Propose) -> Contract,
                tools ["contract_propose"], commands ["contract propose"];
            /// Accepts or rejects a contract.
            POST "/answer-contract" answer_contract AnswerContract(AnswerContract) -> Contract,
                tools ["contract_respond"], commands ["contract accept", "contract reject"];
            /// Takes a proposed contract back.
            POST "/withdraw-contract" withdraw_contract WithdrawContract(WithdrawContract) -> Contract,
                tools ["contract_respond"], commands ["contract withdraw"];
            /// Lists contracts.
            GET "/contracts" contracts Contracts(ContractsQuery) -> Vec<Contract>,
                tools ["contracts_list"], commands ["contract list"];
            /// Compares files with the contracts in force.
            POST "/check-contracts" check_contracts CheckContracts(CheckContracts) -> Checked,
                tools ["contracts_check"], commands ["contract check"], carries_files;
            /// Says which files have contracts on them, or locks of others.
            POST "/concerned" concerned Concerned(Paths) -> Concerned,
                tools ("the hooks of git ask it before they check files"), commands ["git install"];
            /// Says whether the caller may write to files and symbols.
            POST "/guard" guard Guard(Guard) -> Guarded,
                tools ("the host's hook asks before a tool writes"), commands ["file check", "hook run"], carries_files;
            /// Takes leases on what the caller is about to write, unless another agent has it.
            POST "/hold-edits" hold_edits HoldEdits(HoldEdits) -> Guarded,
                tools ("the host's hook asks before a tool writes"), commands ["hook run"], carries_files;

            /// Joins the crew.
            POST "/join-crew" join_crew JoinCrew(JoinCrew) -> Member,
                tools ["claim_acquire"], commands ["adapter run", "claim acquire"];
            /// Keeps the caller in the crew.
            POST "/beat-crew" beat_crew BeatCrew() -> Done,
                tools ("the server for hosts asks it by itself"), commands ["adapter run"];
            /// Leaves the crew.
            POST "/leave-crew" leave_crew LeaveCrew(LeaveCrew) -> LeftCrew,
                tools ("a host's session ends by itself"), commands ["adapter run", "hook run"];
            /// Makes an agent the lead of the crew.
            POST "/appoint-lead" appoint_lead AppointLead(AppointLead) -> Done,
                tools ("a person names the lead"), commands ["crew appoint"];
            /// Lists the hosts of the repository, as the daemon's last turn at the database has found them.
            GET "/hosts" hosts Hosts() -> Hosts,
                tools ("people look after the machines"), commands ["host list", "user list"];
            /// Lists the users of the hosts, with their roles.
            GET "/users" users Users() -> Vec<User>,
                tools ("people give each other roles"), commands ["user list", "user add", "user role", "user remove"];
            /// Gives the user of a host a role on all hosts, or takes the user off the list.
            POST "/set-user" set_user SetUser(SetUser) -> Done,
                tools ("people give each other roles"), commands ["user add", "user role", "user remove"];
            /// Says who works at what, as far as it concerns the caller.
            GET "/at-work" at_work AtWork() -> AtWork,
                tools ("`intents_list`, `locks_list` and `claims` list the same"), commands ["adapter run"];
            /// Claims a file.
            POST "/claim" claim ClaimFile(ClaimFile) -> Claimed,
                tools ["claim_acquire"], commands ["claim acquire"];
            /// Gives a claimed file back.
            POST "/release-claim" release_claim ReleaseClaim(ReleaseClaim) -> Released,
                tools ["claim_release"], commands ["claim release"];
            /// Lists claimed files.
            GET "/claims" claims Claims(ClaimsQuery) -> Vec<HeldFile>,
                tools ["claims"], commands ["claim list"];
            /// Hands work over to another agent.
            POST "/offer-handoff" offer_handoff OfferHandoff(OfferHandoff) -> HandedOver,
                tools ["handoff_offer"], commands ("only agents of the crew hand work over");
            /// Lists the work that is handed over to the caller, or by it.
            GET "/handoffs" handoffs Handoffs(HandoffsQuery) -> Vec<HandedOver>,
                tools ["handoff_list"], commands ("only agents of the crew hand work over");
            /// Accepts or rejects work that was handed over.
            POST "/answer-handoff" answer_handoff AnswerHandoff(AnswerHandoff) -> HandedOver,
                tools ["handoff_accept", "handoff_reject"], commands ("only agents of the crew hand work over");
            /// Imports events of the published server of Agent Protocol.
            POST "/import-events" import_events ImportEvents(ImportEvents) -> Imported,
                tools ("a person imports a database, once"), commands ["agent-protocol import"];

            /// Writes to another agent.
            POST "/send-message" send_message SendMessage(SendMessage) -> Sent,
                tools ["message_send"], commands ["hook run"];
            /// Reads the caller's inbox.
            POST "/read-inbox" read_inbox ReadInbox(ReadInbox) -> Inbox,
                tools ["inbox_read"], commands ["hook run"], waits;
            /// Publishes a message of the broker's to other agents.
            POST "/publish-post" publish_post PublishPost(PublishPost) -> PostPublished,
                tools ("`message_send` writes to agents"), commands ["broker publish", "question answer"];
            /// Lists messages between agents.
            GET "/posts" posts Posts(PostsQuery) -> Posts,
                tools ("`inbox_read` reads the caller's messages"), commands ["broker inbox", "broker log"], waits;
            /// Begins the log of messages again.
            POST "/purge-posts" purge_posts PurgePosts() -> LogBegun,
                tools ("a person decides which messages are of no use any more"), commands ["broker purge"];
            /// Says what each agent of the broker's does.
            GET "/roster" roster Roster() -> Vec<RosterRow>,
                tools ("`intents_list` says what agents do"), commands ["broker status"];
            /// Lists questions that wait for an answer of a person's.
            GET "/questions" questions Questions() -> Vec<Question>,
                tools ("a person answers them"), commands ["question answer", "daemon status"];
            /// Lists what two agents have in the same place, through whichever doors, with the words of both.
            GET "/meetings" meetings Meetings() -> Vec<Meeting>,
                tools ("`conflicts_check` says whom a change would collide with"), commands ["intent conflicts"];
            /// Lists agents that change the same files.
            GET "/overlaps" overlaps Overlaps() -> Vec<Overlap>,
                tools ("`conflicts_check` says whom a change would collide with"), commands ["daemon status"];

            /// Reads what each of two agents has changed of a file in its own work tree.
            GET "/both-changes" both_changes BothChanges(BothChangesQuery) -> Vec<ChangedSide>,
                tools ("`conflicts_check` says whom a change would collide with"),
                commands ("`git diff` in the work trees of both shows it");

            /// Says what applying a task's changes would do.
            POST "/preview-task" preview_task PreviewTask(OfTask) -> Vec<Previewed>,
                tools ["task_diff"], commands ["task apply", "task diff"];
            /// Writes a task's changes into the workspace.
            POST "/apply-task" apply_task ApplyTask(OfTask) -> Applied,
                tools ["task_apply"], commands ["task apply"];
            /// Forgets a task's changes for good.
            POST "/discard-task" discard_task DiscardTask(Discard) -> Discarded,
                tools ["task_discard"], commands ["task discard"];
            /// Lists the git work trees in which runs work.
            GET "/work-trees" work_trees WorkTrees() -> Vec<WorkTree>,
                tools ("`task_status` says on which branch a task has committed"), commands ["worktree list"];
            /// Removes a git work tree of runs.
            POST "/remove-work-tree" remove_work_tree RemoveWorkTree(RemoveWorkTree) -> RemovedWorkTree,
                tools ("what is not committed would be gone for good, so a person decides"), commands ["worktree remove"];
            /// Says what applying given files would do.
            POST "/preview-artifacts" preview_artifacts PreviewArtifacts(Artifacts) -> Vec<Previewed>,
                tools ("editors bring files that they show"), commands ("`provost task apply` takes the files of a task"),
                carries_files;
            /// Writes given files into the workspace.
            POST "/apply-artifacts" apply_artifacts ApplyArtifacts(Artifacts) -> Applied,
                tools ("editors bring files that they show"), commands ("`provost task apply` takes the files of a task"),
                carries_files;
            /// Shows what an apply or an undo would write as the text whose digest a passkey signs.
            POST "/view-apply" view_apply ViewApply(ViewApply) -> ApplyView,
                tools ("`task_diff` shows a model what an apply would do"), commands ["apply undo"];
            /// Lists applies that can be undone.
            GET "/applies" applies Applies() -> Vec<Apply>,
                tools ("a person takes changes into the workspace"), commands ["apply list"];
            /// Brings back the files that an apply has replaced.
            POST "/undo" undo Undo(Undo) -> Applied,
                tools ("a person takes changes into the workspace"), commands ["apply undo"];

            /// Says what a merge of branches would come to.
            POST "/preview-merge" preview_merge PreviewMerge(MergeBranches) -> MergePreview,
                tools ["merge_preview"], commands ["merge branches"];
            /// Puts branches into the queue of merges.
            POST "/queue-merges" queue_merges QueueMerges(QueueMerges) -> MergesQueued,
                tools ["merge_queue_add"], commands ["merge queue add", "merge branches"];
            /// Takes branches out of the queue of merges.
            POST "/remove-merges" remove_merges RemoveMerges(RemoveMerges) -> MergesRemoved,
                tools ("a person tidies the queue up"), commands ["merge queue remove"];
            /// Lists the queue of merges, at once or when it changes.
            GET "/merges" merges Merges(MergesQuery) -> Merges,
                tools ("whose branch is set aside gets a message"), commands ["merge queue list", "merge branches"], waits;
            /// Merges what waits in the queue.
            POST "/run-merges" run_merges RunMerges(RunMerges) -> MergesBegun,
                tools ("a person moves the trunk"), commands ["merge queue run", "merge branches"];

            /// Says how much of the repository's code is read.
            GET "/graph" graph Graph() -> Graph,
                tools ("hosts of models have searches of their own"), commands ["graph status"];
            /// Lists the callers of a symbol.
            GET "/graph/callers" callers Callers(GraphQuery) -> Calls,
                tools ("hosts of models have searches of their own"), commands ["graph callers"];
            /// Lists the symbols that a symbol calls.
            GET "/graph/callees" callees Callees(GraphQuery) -> Calls,
                tools ("hosts of models have searches of their own"), commands ["graph callees"];

            /// Lists the agents that are known.
            GET "/agents" agents Agents() -> Vec<Agent>,
                tools ["workers_list"], commands ["agent list"];
            /// Lists tokens that are good.
            GET "/tokens" tokens Tokens() -> Vec<Token>,
                tools ("a person hands tokens out"), commands ["token list"];
            /// Makes a token.
            POST "/mint-token" mint_token MintToken(MintToken) -> Minted,
                tools ("a person hands tokens out"), commands ["token mint"], changes_proof;
            /// Ends tokens.
            POST "/revoke-tokens" revoke_tokens RevokeTokens(RevokeTokens) -> Vec<Token>,
                tools ("a person hands tokens out"), commands ["token revoke"], changes_proof;
            /// Holds a worker back, or lets it begin again.
            POST "/switch-worker" switch_worker SwitchWorker(SwitchWorker) -> WorkerSwitched,
                tools ("a person holds workers back"), commands ["worker resume", "worker pause"];
            /// Puts an entry into the journal.
            POST "/record" record Record(Record) -> Done,
                tools ("the journal has what was done, not what a model says"), commands ["key add", "key revoke", "agent add", "agent remove"];
            /// Reads the journal from a position.
            GET "/events" events Events(EventsQuery) -> Events,
                tools ("the resource `provost://journal` brings it"), commands ["journal show", "timeline watch"], waits;
            /// Checks the whole journal, and says how far the check has come or what it has found.
            GET "/journal-check" journal_check JournalCheck(JournalCheckQuery) -> JournalCheck,
                tools ("a person looks after the journal"),
                commands ("`provost journal verify` reads the store, also where no daemon runs"), waits;
            /// Finds tasks, messages and events by the words in them, newest first.
            GET "/search" search Search(SearchQuery) -> Found,
                tools ("a person looks for what was said; a model has `task_status`, `inbox_read` and `provost://journal`"),
                commands ["journal search"];
            /// Opens the DevIt door at one more address, until the daemon stops.
            POST "/listen" listen Listen(Listen) -> Done,
                tools ("a person starts programs"), commands ("`devitd` of DevIt's own name asks it");
            /// Opens the page for people, until the daemon stops; where it is open already, says where.
            POST "/open-page" open_page OpenPage() -> PageAt,
                tools ("a page is for people, and a person opens it"), commands ["web open"];
            /// Sends a sample to an address that gets notices, and says what it has answered.
            POST "/test-notice" test_notice TestNotice(TestNotice) -> NoticeTested,
                tools ("a person says where notices go"), commands ["notify test"];
            /// Lists the browsers that are told by their push services.
            GET "/push" browsers Push() -> Push,
                tools ("a person has browsers"), commands ["push list", "doctor"];
            /// Gives the key with which a browser subscribes to its push service; one is made where there is none.
            POST "/begin-push" begin_push BeginPush() -> PushKey,
                tools ("a person has browsers"), commands ("a browser subscribes itself");
            /// Takes what a browser has said of its subscription, for a passkey to sign as `subscribe-push`.
            POST "/offer-push" offer_push OfferPush(OfferPush) -> PushOffered,
                tools ("a person has browsers"), commands ("a browser subscribes itself");
            /// Removes a browser, which then gets no more notices, for a person.
            POST "/remove-push" remove_push RemovePush(RemovePush) -> PushGone,
                tools ("a person has browsers"), commands ["push remove"];
            /// Tells a browser that is told of an approval once more, ten minutes later, if it still waits then.
            POST "/snooze-push" snooze_push SnoozePush(SnoozePush) -> PushSnoozed,
                tools ("a person has browsers"), commands ("a notification on the person's device asks it");
            /// Sends a sample to a browser, and says what its push service has answered.
            POST "/test-push" test_push TestPush(TestPush) -> PushTested,
                tools ("a person has browsers"), commands ["push test"];
            /// Reads configuration, rules and keys again.
            POST "/reload" reload Reload() -> Done,
                tools ("a person changes the rules"), commands ["daemon reload"];
            /// Stops the daemon.
            POST "/stop" stop Stop() -> Done,
                tools ("a person stops the daemon"), commands ["daemon stop"];
        }
    };
}
