//! How well the encoder knows the language of a text in Latin script. Words of other languages than
//! those of its tables are split into pieces that mean something else.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;
use whichlang::{Lang, detect_language};

use super::Encoder;
use super::multilingual::has_rows;
use crate::analysis::letters::plain;
use crate::analysis::symbols::camel_case;
use crate::analysis::{is_stop_word, is_unspaced};

/// Shorter words say little: many languages share them.
const MIN_LETTERS: usize = 4;
/// A text of which the encoder knows more is English, or code.
const MAX_FOREIGN_SHARE: f32 = 0.6;
const LAST_LATIN: char = '\u{24f}';
const MAX_BYTES: usize = 2_000;

/// Short words of other languages in Latin script that a sentence can hardly do without: Dutch,
/// Swedish, Danish, Norwegian, Czech, Turkish, Finnish, Hungarian, Romanian and Indonesian. Not
/// those that are names of programs, or words of a language that the encoder knows. Sorted.
const FUNCTION_WORDS: &str = "\
    aan af att bagaimana bir dan dari dengan det deze değil een egy ett från för geen gibi het \
    hoe hogy hogyan hur hvor hvordan hvorfor ikke inte için joka jsou kan kde když mengapa miksi \
    miten miért mutta måste naar nasıl nebo neden není nerede niet när når och og olarak ook op \
    ovat pentru proč på skal tidak til uit untuk vagy voor waarom wij wordt yang zijn är çok és \
    že și";

static WORDS: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| FUNCTION_WORDS.split_whitespace().collect());

impl Encoder {
    /// The share of words that the encoder knows as a whole, of a text in none of its languages;
    /// `None` for a text in one of them, in code, or too short to tell. Names and code are often taken
    /// for another language, so a text also needs few known words.
    pub(super) fn foreign_share(&self, text: &str) -> Option<f32> {
        let text = beginning(text);
        let (share, count) = self.known_words(text);
        let is_foreign = count > 0
            && share <= MAX_FOREIGN_SHARE
            && matches!(
                detect_language(text),
                Lang::Ara | Lang::Hin | Lang::Nld | Lang::Swe | Lang::Tur
            );
        is_foreign.then_some(share)
    }

    /// Whether a query is certainly in a language that the encoder does not know: it has a word in
    /// another script, or more of the [`FUNCTION_WORDS`] than stop words of English and few words
    /// that the encoder knows.
    pub fn is_foreign(&self, text: &str) -> bool {
        let text = plain(text);
        if has_unknown_script(&text) {
            return true;
        }
        let text = beginning(&text).to_lowercase();
        let words = text.split(|c: char| !c.is_alphabetic());
        let balance = words.fold(0, |sum, word| {
            sum + i32::from(WORDS.contains(word)) - i32::from(is_stop_word(word))
        });
        balance > 0 && self.known_words(&text).0 <= MAX_FOREIGN_SHARE
    }

    /// The share of known words among the words that are long enough, and their number.
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    fn known_words(&self, text: &str) -> (f32, usize) {
        let runs = text.split(|c: char| !c.is_alphabetic());
        let is_word = |word: &&str| word.chars().nth(MIN_LETTERS - 1).is_some();
        let (mut known, mut count) = (0usize, 0usize);
        for word in runs.flat_map(camel_case).filter(is_word) {
            count += 1;
            known += usize::from(self.is_word(&word.to_lowercase()));
        }
        (known as f32 / count.max(1) as f32, count)
    }
}

/// Whether a text has a word in a script that the encoder does not know. A single letter may be a
/// symbol, but not of a script without spaces between words.
fn has_unknown_script(text: &str) -> bool {
    let is_unknown = |c: &char| {
        let is_latin = *c <= LAST_LATIN || ('\u{1e00}'..='\u{1eff}').contains(c);
        !is_latin && c.is_alphabetic() && !has_rows(*c)
    };
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        let letters = word.chars().filter(is_unknown);
        letters.clone().count() > 1 || letters.into_iter().any(is_unspaced)
    })
}

fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_words_are_sorted_and_not_english() {
        assert!(FUNCTION_WORDS.split_whitespace().is_sorted());
        assert!(!FUNCTION_WORDS.split_whitespace().any(is_stop_word));
    }

    /// Questions of programmers in English, however strange their words are.
    const ENGLISH: &str = "\
        kafka consumer lag | pydantic validation | python elementtree delete namespace | mongod |
        fastify? | terraform state lock | kubectl rollout restart deployment |
        nginx upstream timeout | postgres vacuum bloat | redis eviction policy |
        celery beat schedule | sqlalchemy session rollback | webpack chunk hash |
        vite hmr websocket | jest snapshot obsolete | pytest fixture scope | tokio runtime panic |
        serde untagged enum | clippy needless borrow | grpc deadline exceeded |
        envoy sidecar injection | istio mtls strict | helm chart values | argocd sync wave |
        prometheus cardinality | grafana datasource provisioning | loki retention |
        rabbitmq quorum queue | zookeeper ensemble quorum | etcd defrag |
        minio bucket versioning | airflow dag backfill | dbt incremental model |
        snowflake warehouse suspend | numpy broadcasting | pandas merge asof |
        django migration squash | fastapi dependency override | flutter gradle daemon |
        xcode provisioning profile | cmake fetchcontent | openssl pem der des |
        del var con nul lpt1 | cron job in est timezone | min max λ α β | latency in µs |
        naïve bayes classifier | café menu demo | the el capitan vm in la |
        deploy der certificate to the de region | i18n locale de en fr es |
        npm ERR! code ELIFECYCLE | let le = self.len();";
    /// The same in the other languages of the encoder.
    const KNOWN: &str = "\
        das Zertifikat ist abgelaufen | Wie setze ich das Passwort zurück? |
        Speicherverbrauch wächst ständig | Rückwärtssuche schlägt fehl |
        warum brechen Verbindungen nachts ab, wenn der Server neu startet | mot de passe oublié |
        l'index est dans le cache | Comment supprimer une branche locale ? | limite du cache |
        los permisos del servidor se pierden | contraseña olvidada por el usuario |
        quando o servidor reinicia uma conexão |
        le connessioni al database scadono quando il server riparte |
        dlaczego połączenie z bazą danych nie działa | jak zresetować hasło |
        Как сбросить пароль базы данных? | làm thế nào để đặt lại mật khẩu |
        如何重置数据库密码 | 鍵 | データベースのパスワード | 데이터베이스 비밀번호 재설정";
    const FOREIGN: &str = "\
        de verbinding met de database wordt 's nachts verbroken |
        varför bryts anslutningen till databasen på natten och inte dagtid |
        sunucu neden bu hata ile kapanıyor | anslutningen till databasen bryts på natten |
        proč není databáze dostupná když server běží |
        hogyan lehet egy kapcsolatot lezárni | miksi yhteys katkeaa mutta palvelin ei kaadu |
        bagaimana cara menghapus cache dengan aman | איך לאפס סיסמה |
        كيف أعيد تعيين كلمة المرور | πώς επαναφέρω τον κωδικό";

    #[test]
    fn only_a_text_with_words_of_another_language_is_certainly_foreign() {
        let encoder = Encoder::embedded().unwrap();
        assert!(!encoder.is_foreign(""));
        for (texts, expected) in [(ENGLISH, false), (KNOWN, false), (FOREIGN, true)] {
            for text in texts.split(" |").map(str::trim) {
                assert_eq!(encoder.is_foreign(text), expected, "{text}");
            }
        }
    }

    #[test]
    fn a_text_in_another_language_has_few_known_words_and_code_is_in_none() {
        let share = |text| Encoder::embedded().unwrap().foreign_share(text);
        for text in
            ["anslutningen till databasen bryts på natten", "sunucu neden bu hata ile kapanıyor"]
        {
            assert!(share(text).is_some_and(|share| share <= 0.6), "{text}");
        }
        for text in [
            "database connections drop at night",
            "error[E0382]: borrow of moved value",
            "let mut map = HashMap::new(); map.insert(key, value);",
            "kubectl rollout restart deployment",
            "SELECT count(*) FROM users WHERE deleted_at IS NULL",
            "use",
            "",
        ] {
            assert_eq!(share(text), None, "{text}");
        }
    }
}
