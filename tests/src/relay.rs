//! The wire between one board and the host: a TCP relay at an address that stays, under TLS, so that it sees sizes and
//! no content. It can lose what goes by at the moments that matter.
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More bytes than any message of a board but an update has.
const UPDATE: usize = 3000;

/// What the wire does to an update.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Fault {
    /// Carries it.
    #[default]
    None,
    /// The update doesn't arrive.
    LoseUpdate,
    /// The update arrives, the answer to it does not.
    LoseAnswer,
}

/// Where the host is now; shared by all wires.
pub type Target = Arc<Mutex<SocketAddr>>;

/// A wire.
#[derive(Debug)]
pub struct Relay {
    at: SocketAddr,
    state: Arc<State>,
    noticed: Receiver<()>,
}

#[derive(Debug)]
struct State {
    target: Target,
    fault: Mutex<Fault>,
    open: Mutex<Vec<TcpStream>>,
    noticed: Mutex<Sender<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Relay {
    /// A wire to the host.
    ///
    /// # Panics
    /// If the loopback gives no port.
    pub fn new(target: &Target) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let at = listener.local_addr().expect("it is bound");
        let (sender, noticed) = channel();
        let state = Arc::new(State {
            target: Arc::clone(target),
            fault: Mutex::default(),
            open: Mutex::default(),
            noticed: Mutex::new(sender),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || listener.incoming().flatten().for_each(|board| shared.connect(board)));
        Self { at, state, noticed }
    }

    /// Where boards find it.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// From now on this happens to updates.
    pub fn set(&self, fault: Fault) {
        *lock(&self.state.fault) = fault;
    }

    /// Waits until it happened once.
    ///
    /// # Panics
    /// If it takes too long.
    pub fn wait(&self) {
        self.noticed.recv_timeout(crate::process::PATIENCE).expect("an update comes by");
    }

    /// Carries everything again; connections under way are cut.
    pub fn heal(&self) {
        self.set(Fault::None);
        lock(&self.state.open).drain(..).for_each(|s| drop(s.shutdown(Shutdown::Both)));
    }
}

impl State {
    fn connect(self: &Arc<Self>, board: TcpStream) {
        // Nobody there: the board is cut off, as by a host that is down.
        let Ok(host) = TcpStream::connect(*lock(&self.target)) else { return };
        let copies = (board.try_clone(), host.try_clone(), board.try_clone(), host.try_clone());
        let (Ok(board2), Ok(host2), Ok(board3), Ok(host3)) = copies else { return };
        lock(&self.open).extend([board3, host3]);
        let sent = Arc::new(Mutex::new(0));
        let (up, down) = (Arc::clone(self), Arc::clone(self));
        let counted = Arc::clone(&sent);
        std::thread::spawn(move || pump(board, host, |n| up.carries_up(n, &counted)));
        std::thread::spawn(move || pump(host2, board2, |_| down.carries_down(&sent)));
    }

    /// Bytes from the board; `sent` counts those since the host last spoke.
    fn carries_up(&self, bytes: usize, sent: &Mutex<usize>) -> bool {
        *lock(sent) += bytes;
        let carries = *lock(sent) < UPDATE || *lock(&self.fault) != Fault::LoseUpdate;
        self.notice(!carries);
        carries
    }

    fn carries_down(&self, sent: &Mutex<usize>) -> bool {
        let carries = *lock(sent) < UPDATE || *lock(&self.fault) != Fault::LoseAnswer;
        if carries {
            *lock(sent) = 0;
        }
        self.notice(!carries);
        carries
    }

    fn notice(&self, happened: bool) {
        if happened {
            let _ = lock(&self.noticed).send(()); // nobody waits any more
        }
    }
}

/// Copies until the end; what `carries` refuses is lost, and the connection stays as if nothing had happened.
fn pump(mut from: TcpStream, mut to: TcpStream, carries: impl Fn(usize) -> bool) {
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(n @ 1..) = from.read(&mut chunk) {
        if carries(n) && to.write_all(&chunk[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
