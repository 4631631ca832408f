//! A migrated database of a case's own, and rows to fill it with.

use std::future::poll_fn;

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use trestle::config::Secret;
use trestle::store::Store;

pub(crate) struct Database {
    name: String,
}

fn server() -> Config {
    let url = std::env::var("DATABASE_URL").expect("DATABASE_URL is not set: run `make bench-sql`");
    url.parse().expect("DATABASE_URL is a connection string")
}

async fn open(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.expect("the server accepts us");
    tokio::spawn(connection);
    client
}

impl Database {
    pub(crate) async fn new(name: &str) -> Self {
        let name = format!("trestle_bench_{name}");
        let admin = open(&server()).await;
        admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let database = Self { name };
        let mut store = Store::connect(&Secret::new(database.url())).await.unwrap();
        store.migrate().await.unwrap();
        database
    }

    /// Drops it, and leaves nothing that the server would clean up or write down while the next one is measured.
    pub(crate) async fn remove(self) {
        let admin = open(&server()).await;
        admin.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await.unwrap();
        admin.batch_execute("CHECKPOINT").await.unwrap();
    }

    /// A connection string for a process of its own.
    pub(crate) fn url(&self) -> String {
        let url = std::env::var("DATABASE_URL").unwrap();
        let base = url.rsplit_once('/').expect("DATABASE_URL ends with /database").0;
        format!("{base}/{}", self.name)
    }

    pub(crate) async fn connect(&self) -> Client {
        let mut config = server();
        config.dbname(&self.name);
        open(&config).await
    }

    /// A connection that listens for new work: the receiver hears each notification.
    pub(crate) async fn listen(&self) -> (Client, mpsc::Receiver<()>) {
        let mut config = server();
        config.dbname(&self.name);
        let (client, mut connection) = config.connect(NoTls).await.unwrap();
        let (heard, ears) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if matches!(message, AsyncMessage::Notification(_)) {
                    // Full means that a wake-up is waiting already.
                    let _ = heard.try_send(());
                }
            }
        });
        client.batch_execute("LISTEN outbox_pending").await.unwrap();
        (client, ears)
    }

    /// Payments of 512 bytes, spread evenly over `participants`.
    pub(crate) async fn fill(&self, rows: usize, participants: usize, tag: &str) {
        const FILL: &str = "SELECT count(*) FROM outbox.enqueue_payment_outbox_batch((
            SELECT jsonb_agg(jsonb_build_object('instruction_id', $3::text || '-' || g, 'participant_id', $3::text || '-' || g % $4::int8,
              'idempotency_key', 'payment', 'rail_type', 'kafka',
              'payload', jsonb_build_object('amount', '10.00', 'currency', 'EUR', 'note', repeat('x', 450))))
            FROM generate_series($1::int8, $2::int8) AS g))";
        let client = self.connect().await;
        for from in (0..rows).step_by(10_000) {
            let to = rows.min(from + 10_000) - 1;
            let bounds = [from, to, participants].map(|number| i64::try_from(number).unwrap());
            client.query(FILL, &[&bounds[0], &bounds[1], &tag, &bounds[2]]).await.unwrap();
        }
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.connect().await.batch_execute(sql).await.unwrap();
    }
}
