//! What a session's user may do: checks, the log of what was denied, and sessions that lose their user.

use super::ctx::Ctx;
use super::{Effect, Store};
use crate::base::error::CommandError;
use crate::base::ids::CommandId;
use crate::base::ids::UserId;
use crate::engine::acl::{self, Acl, Context, Denied, Entry, Reason};
use crate::engine::command::CommandIndex;
use crate::engine::host::Host;
use crate::engine::reply::Reply;
use crate::engine::session::Session;
use kumi_resp::Args;
use std::fmt;
use std::sync::Arc;

impl<'a> Ctx<'a> {
    pub(crate) fn acl(&mut self) -> &mut Acl {
        &mut self.store.acl
    }

    pub(crate) fn acl_and_reply(&mut self) -> (&Acl, &mut Reply<'a>) {
        (&self.store.acl, &mut self.reply)
    }

    pub(crate) fn acl_and_index(&mut self) -> (&mut Acl, &CommandIndex) {
        (&mut self.store.acl, &self.store.index)
    }

    /// Whether a user may run a request.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn permission(
        &self,
        user: UserId,
        id: CommandId,
        args: Args<'_>,
    ) -> Result<(), Denied> {
        match self.store.acl.get(user) {
            Some(user) if user.is_unrestricted() => Ok(()),
            Some(user) => user.check(id, self.store.index.get(id).row, args),
            None => Err(Denied::Command),
        }
    }

    /// Whether this session's user may read every key with the running command.
    pub(crate) fn may_read_all_keys(&mut self, args: Args<'_>) -> bool {
        let user = self.session().login.user;
        if !self.store.acl.is_restricted(user) || self.store.is_replay(self.session) {
            return true;
        }
        let (Some(id), Some(user)) = (self.running, self.store.acl.get(user)) else {
            return false;
        };
        user.reads_all_keys(id, self.store.index.get(id).row, args)
    }

    /// Checks a request of this session, and logs it if it is denied.
    ///
    /// # Errors
    /// The error the client gets.
    #[inline]
    pub(crate) fn check_permission(
        &mut self,
        id: CommandId,
        args: Args<'_>,
    ) -> Result<(), (Denied, CommandError)> {
        let user = self.session().login.user;
        self.check_permission_of(user, id, args)
    }

    /// The same for a caller that knows the session's user.
    ///
    /// # Errors
    /// The error the client gets.
    #[inline]
    pub(crate) fn check_permission_of(
        &mut self,
        user: UserId,
        id: CommandId,
        args: Args<'_>,
    ) -> Result<(), (Denied, CommandError)> {
        if let Some(known) = self.store.acl.get(user)
            && (known.is_unrestricted()
                || self
                    .store
                    .index
                    .get(id)
                    .single_key
                    .is_some_and(|wanted| known.allows_single_key(id, wanted, args)))
        {
            return Ok(());
        }
        self.check_restricted(user, id, args)
    }

    #[inline(never)]
    fn check_restricted(
        &mut self,
        user: UserId,
        id: CommandId,
        args: Args<'_>,
    ) -> Result<(), (Denied, CommandError)> {
        if self.store.is_replay(self.session) {
            return Ok(());
        }
        let Err(denied) = self.permission(user, id, args) else {
            return Ok(());
        };
        let command = self.store.index.get(id).full_name.clone();
        let (reason, object) = match denied {
            Denied::Command => (Reason::Command, command.as_bytes().to_vec()),
            Denied::Key(at) => (Reason::Key, args.get(at).unwrap_or_default().to_vec()),
            Denied::Channel(at) => (Reason::Channel, args.get(at).unwrap_or_default().to_vec()),
        };
        let name = self.session().login.user_name.clone();
        self.log_denial(reason, object, name.to_vec());
        let text = denied.text(&name, &command, args, false);
        let error = CommandError::new([b"NOPERM ".as_slice(), &text].concat());
        Err((denied, error))
    }

    /// Counts and logs something that was denied.
    pub(crate) fn log_denial(&mut self, reason: Reason, object: Vec<u8>, username: Vec<u8>) {
        self.store.telemetry.stats.denied[reason as usize] += 1;
        let context = if self.in_script {
            Context::Lua
        } else if self.session().transaction.multi.is_some() {
            Context::Multi
        } else {
            Context::TopLevel
        };
        let client = self.describe_session();
        let now = self.now;
        let limit = self.store.config.settings().acl_log_max_len;
        let entry = Entry {
            id: 0,
            count: 1,
            reason,
            context,
            object,
            username,
            created_ms: now.unix_ms(),
            updated_ms: now.unix_ms(),
            client,
        };
        self.store.acl.log.add(entry, now, limit);
    }

    /// Makes this session a user's.
    pub(crate) fn become_user(&mut self, id: UserId) {
        let name = self.store.acl.get(id).map(|user| user.name.clone());
        let session = self.session();
        session.login.authenticated = true;
        session.login.user = id;
        if let Some(name) = name {
            session.login.user_name = name;
        }
    }

    /// Makes this session the default user's, as a new connection is.
    pub(crate) fn become_default(&mut self) {
        self.become_user(UserId::DEFAULT);
        let open = self.store.acl.default_is_open();
        let login = &mut self.session().login;
        login.authenticated = open && !login.named_only;
    }

    /// Reads all users from a file again. As in Redis 7.2, the sessions of all users but the default one are closed.
    ///
    /// # Errors
    /// What is wrong with the file; nothing has changed.
    pub(crate) fn load_acl_file(&mut self, path: &[u8]) -> Result<(), String> {
        let replaced = self.store.load_acl_file(path, self.host)?;
        for id in replaced {
            self.close_sessions_of(id, |_| true);
        }
        let ids: Vec<UserId> = self.store.acl.ids().collect();
        for id in ids {
            self.user_changed(id);
        }
        Ok(())
    }

    /// Whether CONFIG REWRITE writes directives that have their defaults and no line.
    pub(crate) fn set_rewrites_all(&mut self, all: bool) {
        self.store.config.set_rewrites_all(all);
    }

    /// Puts the users into the configuration, for CONFIG REWRITE; none if they are kept in an ACL file.
    pub(crate) fn note_users_for_rewrite(&mut self) {
        let in_file = self.store.config.settings().aclfile.is_some();
        let lines = if in_file {
            Vec::new()
        } else {
            self.store.acl.config_lines()
        };
        self.store.config.set_users(lines);
    }

    /// A user's rules have changed: sessions with subscriptions that the rules no longer allow are closed.
    pub(crate) fn user_changed(&mut self, id: UserId) {
        self.store.clients.open = self.store.acl.default_is_open();
        let Some(user) = self.store.acl.get(id).cloned() else {
            return;
        };
        self.close_sessions_of(id, |session| {
            let subscriptions = &session.subscriptions;
            let literal = subscriptions
                .channels
                .iter()
                .chain(&subscriptions.shard_channels);
            let mut literal = literal.map(|name| (&**name, false));
            let mut patterns = subscriptions.patterns.iter().map(|name| (&**name, true));
            let denied = |(name, pattern): (&[u8], bool)| !user.may_subscribe(name, pattern);
            literal.any(denied) || patterns.any(denied)
        });
    }

    /// Closes a user's sessions; this one after its reply.
    pub(crate) fn close_sessions_of(&mut self, id: UserId, chosen: impl Fn(&Session) -> bool) {
        let sessions = self.store.clients.sessions.iter();
        let keys: Vec<_> = sessions
            .filter(|session| session.login.user == id && chosen(session))
            .map(|session| session.key)
            .collect();
        for key in keys {
            if key == self.session {
                // Until then the id may become another user's, whose rights the rest of a transaction must not get.
                let name = self.session().login.user_name.clone();
                let remains = self.store.acl.find(&name) == Some(id);
                let session = self.session();
                session.ending.closing = true;
                session.ending.leaving.get_or_insert(CHANGED_USER);
                if !remains {
                    session.login.user = UserId::DELETED;
                }
                self.flow = super::Flow::Close;
            } else {
                self.disconnect(key, CHANGED_USER);
            }
        }
    }
}

/// Why sessions end whose user was changed, in the log.
const CHANGED_USER: &str = "its user was changed or removed";

impl Store {
    /// Takes the users of the configuration over: those of its `user` lines, or those of its ACL file. Call it once,
    /// before the first connection.
    ///
    /// # Errors
    /// A line that is no user, or a file that cannot be read, in words for the log.
    pub fn load_users(&mut self, host: &mut dyn Host) -> Result<(), String> {
        let lines = self.config.users().to_vec();
        let all_channels = self.config.settings().acl_pubsub_all_channels;
        let path = self.config.settings().aclfile.clone();
        if path.is_some() && !lines.is_empty() {
            return Err(
                "users are defined in the configuration and an aclfile is set: use one of the two"
                    .to_owned(),
            );
        }
        for line in &lines {
            let user = acl::user_line(line, &self.index, all_channels).map_err(|reason| {
                format!("{reason}. Critical error while loading ACLs. Exiting.")
            })?;
            self.acl.put(user);
        }
        if let Some(path) = path {
            self.load_acl_file(&path, host).map_err(|reason| {
                format!("Aborting Redis startup because of ACL errors: {reason}")
            })?;
        }
        self.clients.open = self.acl.default_is_open();
        Ok(())
    }

    /// Installs users that the program around the server needs, or changes them: these and no others are the program's
    /// from now on. The rules are those of ACL SETUSER, separated by blanks. Sessions of users that changed or left
    /// are closed. Call it between commands, the first time behind [`Store::load_users`].
    ///
    /// ACL SETUSER, ACL DELUSER and ACL LOAD leave these users alone, and they are in no file that the server writes.
    ///
    /// # Errors
    /// A name that does not begin with `kumi-` or is another user's, or a wrong rule; nothing has changed.
    pub fn set_host_users(&mut self, users: &[HostUser]) -> Result<(), String> {
        let all_channels = self.config.settings().acl_pubsub_all_channels;
        let mut parsed = Vec::new();
        for HostUser { name, rules } in users {
            if !name.starts_with(HOST_USER_PREFIX) || name.contains(char::is_whitespace) {
                return Err(format!(
                    "user '{name}': the users of the program that runs the server are called {HOST_USER_PREFIX}..."
                ));
            }
            let known = self.acl.find(name.as_bytes());
            let known = known.and_then(|id| self.acl.get(id));
            if known.is_some_and(|user| !user.is_hosts) {
                return Err(acl::held_name(name.as_bytes()));
            }
            let line = format!("{name} {rules}");
            let mut user = acl::user_line(line.as_bytes(), &self.index, all_channels)?;
            user.is_hosts = true;
            parsed.push(user);
        }
        for id in self.acl.put_host_users(parsed) {
            let sessions = self.clients.sessions.iter();
            let sessions = sessions.filter(|session| session.login.user == id);
            let keys: Vec<_> = sessions.map(|session| session.key).collect();
            for key in keys {
                // Until it is closed, the id may become another user's.
                if let Some(session) = self.clients.sessions.get_mut(key) {
                    session.login.user = UserId::DELETED;
                }
                self.note_leaving(key, CHANGED_USER);
                self.effect(Effect::Close(key));
            }
        }
        Ok(())
    }

    fn load_acl_file(&mut self, path: &[u8], host: &mut dyn Host) -> Result<Vec<UserId>, String> {
        let text = host.read_file(path).map_err(|reason| {
            let path = String::from_utf8_lossy(path);
            format!("Error loading ACLs, opening file '{path}': {reason}. ")
        })?;
        let all_channels = self.config.settings().acl_pubsub_all_channels;
        let users = acl::parse(path, &text, &self.index, all_channels)?;
        if let Some(user) = users.iter().find(|user| self.acl.is_hosts(&user.name)) {
            let path = String::from_utf8_lossy(path);
            return Err(format!("{path}: {}. ", acl::held_name(&user.name)));
        }
        Ok(self.acl.replace(users, &self.index))
    }
}

/// How the names of all users begin that a program installs.
const HOST_USER_PREFIX: &str = "kumi-";

/// A user that the program around the server installs, see [`Store::set_host_users`].
#[derive(Clone, PartialEq, Eq)]
pub struct HostUser {
    name: String,
    rules: String,
}

impl HostUser {
    /// `rules` are those of ACL SETUSER, separated by blanks: `on #<hash of the password> ~* &* +@all`.
    #[must_use]
    pub fn new(name: impl Into<String>, rules: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            rules: rules.into(),
        }
    }
}

impl fmt::Debug for HostUser {
    /// Shows no rules: they may hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostUser")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The name sessions begin with.
pub(super) fn default_name(acl: &Acl) -> Arc<[u8]> {
    acl.get(UserId::DEFAULT).map_or_else(
        || Arc::from(b"default".as_slice()),
        |user| user.name.clone(),
    )
}
