//! The embedded ledger.
use super::{Admission, Answer, Device, Enrolment, Kept, Ledger, LedgerError, Record, Standing, TokenNote};
use crate::clock::Millis;
use models::id::{ClientId, Hash};
use models::wire::Health;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{Row, Sqlite as Db, SqliteConnection, Transaction, query, query_scalar, raw_sql};
use std::path::Path;
use std::time::Duration;

/// One step per schema version; a step never changes once released.
const MIGRATIONS: [&str; 1] = [include_str!("schema_1.sql")];

macro_rules! devices {
    ($which:literal) => {
        concat!(
            "SELECT id, key, name, standing, enrolled_ms, seen_ms, compared, route_decile, ",
            "(SELECT coalesce(sum(count), 0) FROM refusals WHERE device = id) AS refusals FROM devices ",
            $which
        )
    };
}

/// SQLite in a file: write-ahead log, every commit synced.
#[derive(Debug)]
pub struct Sqlite {
    pool: SqlitePool,
}

impl Sqlite {
    /// Makes the file if it is not there, and opens it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn create(path: &Path) -> Result<Self, LedgerError> {
        let ledger = Self::connect(path, true).await?;
        ledger.migrate().await?;
        Ok(ledger)
    }

    /// Opens the file and brings its schema up to date. One that is missing or empty is never taken for a run that has not begun.
    ///
    /// # Errors
    /// [`LedgerError::Missing`] and others.
    pub async fn open(path: &Path) -> Result<Self, LedgerError> {
        let missing = || LedgerError::Missing { path: path.into() };
        if !path.is_file() {
            return Err(missing());
        }
        let ledger = Self::connect(path, false).await?;
        if ledger.version().await? == 0 {
            return Err(missing());
        }
        ledger.migrate().await?;
        Ok(ledger)
    }

    async fn connect(path: &Path, create: bool) -> Result<Self, LedgerError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(create)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await?;
        Ok(Self { pool })
    }

    async fn version(&self) -> Result<i64, LedgerError> {
        Ok(query_scalar("PRAGMA user_version").fetch_one(&self.pool).await?)
    }

    /// Writes everything out and lets go of the file.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Writes a consistent copy to a new file, also while others write.
    ///
    /// # Errors
    /// [`LedgerError`]; the file must not be there yet.
    pub async fn copy_to(&self, path: &Path) -> Result<(), LedgerError> {
        query("VACUUM INTO ?").bind(path.to_string_lossy().into_owned()).execute(&self.pool).await?;
        Ok(())
    }

    async fn migrate(&self) -> Result<(), LedgerError> {
        let mut transaction = self.write().await?;
        let found: i64 = query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await?;
        let known = MIGRATIONS.len() as i64;
        if found > known {
            return Err(LedgerError::Newer { found, known });
        }
        for step in &MIGRATIONS[found.max(0) as usize..] {
            raw_sql(*step).execute(&mut *transaction).await?;
        }
        query(sqlx::AssertSqlSafe(format!("PRAGMA user_version = {known}")))
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }

    /// A transaction that may write: takes the lock at once, so that it never has to be undone for another's sake.
    async fn write(&self) -> Result<Transaction<'static, Db>, LedgerError> {
        Ok(self.pool.begin_with("BEGIN IMMEDIATE").await?)
    }

    async fn append(&self, at: Millis, records: Vec<Record>) -> Result<(), LedgerError> {
        let mut transaction = self.write().await?;
        for Record { kind, body } in records {
            let insert = query("INSERT INTO events (at_ms, kind, body) VALUES (?, ?, ?)");
            insert.bind(at.0 as i64).bind(kind).bind(body).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    async fn enrol(&self, wish: Enrolment) -> Result<Admission, LedgerError> {
        let mut transaction = self.write().await?;
        let token =
            query("SELECT not_after_ms, used_by FROM tokens WHERE digest = ?").bind(&wish.token.0[..]);
        let Some(token) = token.fetch_optional(&mut *transaction).await? else {
            return Ok(Admission::UnknownToken);
        };
        match token.get::<Option<Vec<u8>>, _>("used_by") {
            Some(by) if by != wish.key.0 => return Ok(Admission::UsedToken),
            None if (token.get::<i64, _>("not_after_ms") as u64) <= wish.at.0 => {
                return Ok(Admission::ExpiredToken);
            }
            _ => {}
        }
        let device = match by_key(&mut transaction, wish.key).await? {
            Some(device) if device.standing == Standing::Revoked => return Ok(Admission::RevokedKey),
            Some(device) => device,
            None => insert_device(&mut transaction, &wish).await?,
        };
        let used = query("UPDATE tokens SET used_by = ? WHERE digest = ?")
            .bind(&wish.key.0[..])
            .bind(&wish.token.0[..]);
        used.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(Admission::In(device))
    }

    async fn events(&self, after: i64, limit: u32) -> Result<Vec<Kept>, LedgerError> {
        let rows = query("SELECT seq, at_ms, kind, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?")
            .bind(after)
            .bind(limit);
        let kept = |row: SqliteRow| Kept {
            seq: row.get(0),
            at: Millis(row.get::<i64, _>(1) as u64),
            kind: row.get(2),
            body: row.get(3),
        };
        Ok(rows.fetch_all(&self.pool).await?.into_iter().map(kept).collect())
    }

    async fn device_by_key(&self, key: Hash) -> Result<Option<Device>, LedgerError> {
        by_key(&mut *self.pool.acquire().await?, key).await
    }

    async fn devices(&self) -> Result<Vec<Device>, LedgerError> {
        let rows = query(devices!("ORDER BY id")).fetch_all(&self.pool).await?;
        rows.iter().map(device).collect()
    }

    async fn set_standing(&self, id: ClientId, standing: Standing) -> Result<(), LedgerError> {
        let update = query("UPDATE devices SET standing = ? WHERE id = ?").bind(standing.name()).bind(id.0);
        match update.execute(&self.pool).await?.rows_affected() {
            0 => Err(LedgerError::NoDevice(id)),
            _ => Ok(()),
        }
    }

    async fn heard(&self, id: ClientId, at: Millis) -> Result<(), LedgerError> {
        let update = query("UPDATE devices SET seen_ms = ? WHERE id = ?").bind(at.0 as i64).bind(id.0);
        update.execute(&self.pool).await?;
        Ok(())
    }

    async fn felt(&self, id: ClientId, health: Health) -> Result<(), LedgerError> {
        let update = query("UPDATE devices SET compared = ?, route_decile = ? WHERE id = ?");
        update.bind(health.compared).bind(health.route_decile).bind(id.0).execute(&self.pool).await?;
        Ok(())
    }

    async fn refused(&self, id: ClientId, reject: &'static str) -> Result<(), LedgerError> {
        let insert = "INSERT INTO refusals (device, reject, count) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1";
        query(insert).bind(id.0).bind(reject).execute(&self.pool).await?;
        Ok(())
    }

    async fn refusals(&self, id: ClientId) -> Result<Vec<(String, u64)>, LedgerError> {
        let rows = query("SELECT reject, count FROM refusals WHERE device = ? ORDER BY reject").bind(id.0);
        Ok(rows
            .fetch_all(&self.pool)
            .await?
            .iter()
            .map(|row| (row.get(0), row.get::<i64, _>(1) as u64))
            .collect())
    }
}

async fn by_key(connection: &mut SqliteConnection, key: Hash) -> Result<Option<Device>, LedgerError> {
    let row = query(devices!("WHERE key = ?")).bind(&key.0[..]).fetch_optional(connection).await?;
    row.as_ref().map(device).transpose()
}

async fn insert_device(connection: &mut SqliteConnection, wish: &Enrolment) -> Result<Device, LedgerError> {
    let next: u32 =
        query_scalar("SELECT coalesce(max(id) + 1, 0) FROM devices").fetch_one(&mut *connection).await?;
    let id = ClientId(next);
    let insert = query(
        "INSERT INTO devices (id, key, name, standing, enrolled_ms, seen_ms) VALUES (?, ?, ?, 'active', ?, ?)",
    );
    let at = wish.at.0 as i64;
    insert.bind(id.0).bind(&wish.key.0[..]).bind(&wish.name).bind(at).bind(at).execute(connection).await?;
    let (enrolled, seen) = (wish.at, wish.at);
    Ok(Device {
        id,
        key: wish.key,
        name: wish.name.clone(),
        standing: Standing::Active,
        enrolled,
        seen,
        refusals: 0,
        health: None,
    })
}

fn device(row: &SqliteRow) -> Result<Device, LedgerError> {
    let id: u32 = row.get("id");
    let damaged = |what| LedgerError::Damaged { what, row: i64::from(id) };
    Ok(Device {
        id: ClientId(id),
        key: Hash(row.get::<&[u8], _>("key").try_into().map_err(|_| damaged("key"))?),
        name: row.get("name"),
        standing: Standing::from_name(row.get("standing")).ok_or_else(|| damaged("standing"))?,
        enrolled: Millis(row.get::<i64, _>("enrolled_ms") as u64),
        seen: Millis(row.get::<i64, _>("seen_ms") as u64),
        refusals: row.get::<i64, _>("refusals") as u64,
        health: row
            .get::<Option<i8>, _>("compared")
            .map(|compared| Health { compared, route_decile: row.get("route_decile") }),
    })
}

impl Ledger for Sqlite {
    fn append(&self, at: Millis, records: Vec<Record>) -> Answer<'_, ()> {
        Box::pin(self.append(at, records))
    }
    fn events(&self, after: i64, limit: u32) -> Answer<'_, Vec<Kept>> {
        Box::pin(self.events(after, limit))
    }
    fn add_token(&self, digest: Hash, name: Option<String>, not_after: Millis) -> Answer<'_, ()> {
        Box::pin(async move {
            let insert = query("INSERT INTO tokens (digest, name, not_after_ms) VALUES (?, ?, ?)");
            insert.bind(&digest.0[..]).bind(name).bind(not_after.0 as i64).execute(&self.pool).await?;
            Ok(())
        })
    }
    fn tokens(&self) -> Answer<'_, Vec<TokenNote>> {
        Box::pin(async move {
            let rows = query("SELECT name, not_after_ms, used_by FROM tokens ORDER BY name, digest");
            let note = |row: &SqliteRow| TokenNote {
                name: row.get(0),
                not_after: Millis(row.get::<i64, _>(1) as u64),
                used_by: row.get::<Option<&[u8]>, _>(2).and_then(|key| key.try_into().ok()).map(Hash),
            };
            Ok(rows.fetch_all(&self.pool).await?.iter().map(note).collect())
        })
    }
    fn enrol(&self, wish: Enrolment) -> Answer<'_, Admission> {
        Box::pin(self.enrol(wish))
    }
    fn device_by_key(&self, key: Hash) -> Answer<'_, Option<Device>> {
        Box::pin(self.device_by_key(key))
    }
    fn devices(&self) -> Answer<'_, Vec<Device>> {
        Box::pin(self.devices())
    }
    fn set_standing(&self, id: ClientId, standing: Standing) -> Answer<'_, ()> {
        Box::pin(self.set_standing(id, standing))
    }
    fn heard(&self, id: ClientId, at: Millis) -> Answer<'_, ()> {
        Box::pin(self.heard(id, at))
    }
    fn felt(&self, id: ClientId, health: Health) -> Answer<'_, ()> {
        Box::pin(self.felt(id, health))
    }
    fn refused(&self, id: ClientId, reject: &'static str) -> Answer<'_, ()> {
        Box::pin(self.refused(id, reject))
    }
    fn refusals(&self, id: ClientId) -> Answer<'_, Vec<(String, u64)>> {
        Box::pin(self.refusals(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sqlite_keeps_what_a_ledger_promises() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.sqlite");
        super::super::conformance::check(|| async {
            Box::new(Sqlite::create(&path).await.unwrap()) as Box<dyn Ledger>
        })
        .await;
    }

    #[tokio::test]
    async fn events_can_be_neither_changed_nor_removed_and_a_newer_schema_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.sqlite");
        let ledger = Sqlite::create(&path).await.unwrap();
        ledger.append(Millis(1), vec![Record { kind: "a", body: vec![1] }]).await.unwrap();
        assert!(query("UPDATE events SET kind = 'b'").execute(&ledger.pool).await.is_err());
        assert!(query("DELETE FROM events").execute(&ledger.pool).await.is_err());
        query("PRAGMA user_version = 99").execute(&ledger.pool).await.unwrap();
        ledger.close().await;
        assert!(matches!(Sqlite::open(&path).await, Err(LedgerError::Newer { found: 99, .. })));
    }

    #[tokio::test]
    async fn a_ledger_that_is_missing_or_empty_is_no_new_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.sqlite");
        assert!(matches!(Sqlite::open(&path).await, Err(LedgerError::Missing { .. })));
        assert!(!path.exists(), "looking makes nothing");
        std::fs::write(&path, b"").unwrap();
        assert!(matches!(Sqlite::open(&path).await, Err(LedgerError::Missing { .. })));
        Sqlite::create(&path).await.unwrap().close().await;
        assert!(Sqlite::open(&path).await.is_ok());
    }
}
