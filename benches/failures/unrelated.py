#!/usr/bin/env python3
"""Writes unrelated.jsonl: 2,000 notes about the same technologies that explain none of the errors.

A frame is a kind, tags, titles, sentences and facts, separated by `|`, with alternatives separated
by `/ `. A note takes one title, one to three sentences and up to four facts of a frame, and fills
their slots with words of its project. The same seed gives the same notes.
"""

import json
import pathlib
import random
import re

COUNT = 2000
SEED = 11
PROJECTS = {
    "payments-api": ("refund ledger/ chargeback worker/ fee calculator/ payout scheduler/ webhook receiver/ idempotency store/ currency table", "refunds/ payouts/ ledger_entries/ webhooks/ mandates", "settle_batch/ apply_fee/ post_entry/ verify_signature/ close_day"),
    "web-shop": ("cart drawer/ product page/ checkout form/ search bar/ wishlist/ voucher box/ category tree", "carts/ products/ vouchers/ stock_levels/ reviews", "useCart/ formatPrice/ renderTeaser/ applyVoucher/ loadFacets"),
    "data-pipeline": ("order importer/ dedupe step/ window aggregator/ export job/ schema registry/ late-row handler/ partition planner", "orders_raw/ sessions_daily/ dim_customer/ fact_sales/ late_rows", "plan_partitions/ merge_batch/ read_manifest/ emit_metrics/ compact"),
    "mobile-app": ("login screen/ offline queue/ push handler/ onboarding flow/ photo picker/ settings page/ map view", "drafts/ devices/ sync_state/ photos", "enqueueUpload/ restoreSession/ renderMap/ registerToken"),
    "infra-terraform": ("network stack/ bastion host/ dns zone/ backup bucket/ monitoring stack/ runner pool/ secrets store", "leases/ inventories/ cost_reports", "plan_network/ rotate_keys/ tag_resources/ render_inventory"),
    "infra-k8s": ("ingress chart/ autoscaler/ cron jobs/ secret operator/ node pool/ staging namespace/ log shipper", "releases/ quotas/ events_archive", "render_values/ drain_node/ sync_secrets/ promote_release"),
    "docs-site": ("search index/ version switcher/ API reference/ changelog page/ redirect map/ code samples/ translation sync", "pages/ redirects/ feedback", "build_index/ check_links/ render_sample/ split_versions"),
    "home-automation": ("heating rules/ presence sensor/ light scenes/ door bell bridge/ energy meter/ blind controller/ voice gateway", "readings/ scenes/ devices/ rules_log", "dim_lights/ next_setpoint/ pair_device/ publish_state"),
    "sensor-gateway": ("frame parser/ ring buffer/ uplink client/ calibration tool/ watchdog/ firmware updater/ radio driver", "samples/ calibrations/ uplink_queue", "parse_frame/ crc16/ push_sample/ backoff_ms/ read_register"),
    "ml-training": ("feature store/ tokenizer/ evaluation suite/ checkpoint writer/ data loader/ label tool/ model card", "runs/ labels/ embeddings/ splits", "collate/ eval_step/ save_checkpoint/ sample_negatives"),
    "report-service": ("monthly report/ PDF renderer/ mail sender/ chart builder/ template folder/ export queue/ access log", "reports/ schedules/ recipients/ templates", "render_pdf/ group_rows/ send_report/ next_run"),
    "shop-admin": ("product editor/ bulk import/ price history/ role editor/ audit trail/ media library/ stock table", "price_changes/ roles/ audit_events/ media", "bulk_update/ can_edit/ diff_prices/ resize_image"),
    "ingest-rs": ("line parser/ batch writer/ metrics endpoint/ config loader/ retry queue/ compressor/ shard router", "batches/ offsets/ dead_letters", "parse_line/ flush_batch/ next_shard/ load_config"),
    "relay-go": ("hub/ session registry/ rate limiter/ health endpoint/ frame codec/ admin console/ presence map", "sessions/ bans/ audit", "Join/ Broadcast/ allow/ encodeFrame"),
}
WORDS = {
    "who": "Ana/ Jonas/ Mira/ Tomasz/ Priya/ Lea/ Diego/ Yuki/ Sam/ Noor",
    "n": "3/ 5/ 8/ 12/ 20/ 40/ 64/ 100/ 250/ 500",
    "ms": "15 ms/ 40 ms/ 120 ms/ 300 ms/ 900 ms/ 2 s/ 7 s",
    "pct": "4/ 9/ 14/ 22/ 35/ 48/ 60",
    "mb": "30 MB/ 85 MB/ 140 MB/ 410 MB/ 900 MB",
    "month": "January/ March/ April/ June/ September/ November",
    "day": "Mondays/ Thursdays/ the first of the month/ release days/ quarter ends",
    "team": "platform team/ data team/ support/ finance/ the mobile team/ operations",
    "env": "staging/ production/ the preview environment/ the demo tenant/ the load-test cluster",
    "ver": "1.4/ 2.0/ 2.7/ 3.1/ 4.2/ 5.0",
    "lang": "German/ French/ Spanish/ Japanese/ Polish/ Portuguese",
    "col": "status/ updated_at/ tenant_id/ external_ref/ kind/ priority/ locale",
    "hdr": "X-Request-Id/ Idempotency-Key/ X-Tenant/ ETag/ Retry-After/ X-Trace",
    "met": "queue_depth/ p95_latency/ rows_per_second/ cache_hits/ retries_total/ open_sessions",
    "size": "small/ medium/ large",
}
FRAMES = """
decision|git, workflow|Short-lived branches for the {comp}, squash on merge/ The {comp} is developed on trunk, behind a flag|We compared long branches with trunk work for the {comp}; merges took {who} half a day each. / Every branch is merged within {n} hours of review. / The flag is called {flag} and is removed {month} at the latest.|squash keeps one commit per change/ branches are named after the ticket/ release branches only for hotfixes/ {who} watches the stale ones
change|git, history|Moved the {comp} out of the monorepo with its history/ History of the {comp} was filtered before it became public|git filter-repo kept only the paths of the {comp}. / The new repository has {n} tags fewer, which nobody missed. / Old commit hashes are listed in docs/hashes.txt.|path filters come before renames/ tags were rewritten as well/ the old repository is read-only since {month}
discovery|git, bisect|git bisect found the change that slowed {fn}/ Bisecting the {comp} with a script took {n} minutes|The regression of {ms} in {fn} came in with the new {comp}. / A script that returns 125 for commits that do not build made it automatic.|git bisect run tools/slow.sh/ skip merges with --first-parent/ the culprit was an extra query on {table}
decision|git, review|Two reviewers for changes to {table}, one for the rest/ CODEOWNERS sends changes of the {comp} to {team}|Reviews of the {comp} were slow since everybody was asked. / {who} proposed owners per folder. / Owners answer within a day or hand over.|paths, not people/ drafts notify nobody/ {team} owns migrations
feature|git, release|Changelog of the {comp} is generated from merge titles/ Release notes are grouped by component, the {comp} first|Titles are written for readers now. / The script groups them by label and drops chores. / {team} reads them before version {ver} goes out.|labels: added, changed, fixed/ no entry without a label/ the file is checked in
decision|docker, images|Base image of the {comp} is debian-slim/ Distroless for the {comp}, slim for everything with a shell|Alpine saved {mb} but its allocator cost {pct} % throughput. / {who} measured both under the same load. / The base is rebuilt every week.|one base for all services/ tags carry the date/ non-root user 10001
change|docker, build|Multi-stage build makes the {comp} image {mb} smaller/ Build stage and run stage of the {comp} are separate|The compiler stays in the first stage, only the artefact is copied. / Dependencies come before the sources so that the layer is reused. / Cold builds take {n} minutes, warm ones seconds.|COPY the manifest first/ one RUN per concern/ labels hold the commit
howto|docker, debugging|How to look into a running {comp} container/ A debug sidecar for the {comp}|The image has no shell, so a second container shares its process namespace. / {who} keeps the command in the runbook.|docker run --pid container:NAME/ nsenter needs root on the host/ remove it afterwards
decision|docker compose, local|Local setup starts only {table} and the {comp} by default/ Compose profiles keep the {comp} out of the default set|Laptops with 8 GB could not hold the whole stack. / Profiles are called core, search and mail. / The readme lists what each needs.|core takes {mb}/ seed data is {n} rows per table/ ports start at 15000
feature|docker, health|Health check of the {comp} asks for real work/ Readiness of the {comp} differs from liveness|Liveness answers if the loop turns, readiness only once the caches are filled. / Restarts after deployments went down by {pct} %.|interval 10 s, {n} retries/ no database call in liveness/ start period 40 s
change|ci, cache|CI caches dependencies of the {comp} by lock file hash/ Cache key of the {comp} job contains the image digest|The job went from {n} minutes to a third. / Keys never fall back to another branch. / Old caches expire after a week.|restore keys are off/ one cache per job/ {mb} on average
decision|ci, pipeline|Only changed packages are tested on branches/ The {comp} tests run on every merge, the rest nightly|Full runs took {n} minutes and nobody waited for them. / A path filter decides, main always runs everything. / {team} agreed in {month}.|the filter is tested itself/ nightly at 03:20/ results go to the channel
feature|ci, reports|Test times of the {comp} are recorded per case/ Slowest {n} tests are listed after each run|The list made three fixtures visible that started a server each. / Trends are kept for {n} days.|JUnit files are merged/ the board shows the median/ thresholds only warn
howto|ci, runners|Adding a runner for the {comp}/ Runner pool: {n} machines, one label per architecture|Runners register with a token from the secrets store and delete themselves after a job. / {who} automated it in {month}.|labels: amd64, arm64, gpu/ concurrency 1/ images are pulled once a day
decision|ci, flaky|Flaky tests of the {comp} are quarantined for two weeks/ No automatic reruns in the {comp} pipeline|Reruns hid a real race in {fn}. / A quarantined test still runs but does not decide. / After two weeks it is repaired or deleted.|list in tests/quarantine.txt/ owner is the last editor/ {n} entries at most
decision|rust, workspace|{comp} is a crate of its own/ Split the workspace: types without dependencies first|Compile times of dependants fell by {pct} %. / The types crate has no features and no build script. / {who} drew the graph before cutting.|dependencies point downwards/ one public module per crate/ tests stay with the code
discovery|rust, performance|{fn} spent most of its time in allocation/ A smaller enum made {fn} {pct} % faster|Profiling with perf showed clones of every row. / Borrowing from the buffer avoids them. / Bench: {ms} before, a third of it now.|Cow for the rare escapes/ SmallVec did not help/ criterion baseline is kept
decision|rust, errors|Errors of the {comp}: one enum per crate, thiserror/ anyhow only in binaries of {project}|Callers match on kinds, so messages may change. / The context is added where a path or an id is known. / Logs show the chain.|no String errors/ sources are kept/ exit codes live in main.rs
decision|rust, async|{comp} uses threads, not async/ One runtime for all of the {comp}|There are at most {n} connections, so threads are simpler. / Cancellation is a channel that closes. / Measured: same latency, {mb} less memory.|bounded queues everywhere/ names on every thread/ shutdown takes {ms}
change|cargo, dependencies|Dropped {n} dependencies from the {comp}/ cargo-deny checks licences for {project}|Most came through default features. / The tree is printed in review when the lock changes. / {who} looks at duplicates once a month.|default-features = false/ advisories fail the job/ git dependencies are forbidden
feature|node, logging|Structured logs in the {comp}/ Log lines of the {comp} carry {hdr}|JSON in {env}, pretty output at home. / Personal data is redacted by key name. / {team} searches by {hdr}.|levels: debug is off in production/ one line per request/ durations in milliseconds
decision|npm, packages|{project} uses workspaces, no separate repositories/ Shared UI parts of the {comp} live in packages/ui|Publishing for every change took too long. / Versions are bumped together. / {who} maintains the build order.|private packages are never published/ one TypeScript project per package/ import by package name
change|npm, bundle|{comp} bundle is {pct} % smaller/ Route-level code splitting for the {comp}|Date formatting and icons were imported as a whole. / The budget is checked on each merge. / Largest chunk: {mb}.|dynamic import for charts/ icons one by one/ budget file in config/
decision|typescript, api|Types of the {comp} are generated from the OpenAPI file/ No enums in {project}, unions of literals instead|Hand-written types had drifted in {n} places. / The generator runs before the type check. / Generated files are not edited.|one schema per version/ nullable is explicit/ dates stay strings at the border
howto|node, profiling|How to take a CPU profile of the {comp}/ Finding slow renders in the {comp}|Start with the inspector, record {n} seconds under load and open the file in the browser's tools. / {fn} turned out to be the hot spot.|profile in {env} only with {team}/ flame graphs are attached to the ticket
feature|react, forms|Form state of the {comp} survives a reload/ {comp} validates on blur, not on each key|Drafts are stored per user for {n} days. / Validation rules are shared with the server. / Support calls about lost input stopped.|key: draft:{comp}/ no secrets in storage/ focus goes to the first invalid field
decision|css, design|Design tokens for the {comp}/ Dark mode of {project} by custom properties|Colours, spacing and radii come from one file. / Contrast was checked with {team}. / {n} shades were merged.|names by role, not by colour/ no inline styles/ high contrast is a third theme
discovery|browser, performance|Largest paint of the {comp} is the hero image/ {comp}: layout shifts came from web fonts|Preloading the picture won {ms}. / Sizes are set in the markup. / Measured on a cheap phone with slow network.|avif with jpeg fallback/ font-display: optional/ p75 is what counts
decision|python, layout|{project} has a src folder and one pyproject/ Type hints are required in the {comp}|Linting, typing and packaging are set in one file. / The rest is moved when it is touched. / {who} wrote the guide.|line length 100/ imports sorted by the linter/ no star imports
feature|python, cli|Command line of the {comp} got sub-commands/ {fn} can be run by hand with --dry-run|Operations used to edit the database. / Dry runs print what would change in {table}. / Each command logs who started it.|argparse, no extra library/ output is a table or JSON/ confirmation in production
decision|python, dependencies|Dependencies of {project} are compiled once a week/ One lock per environment for the {comp}|The robot opens a merge request on {day}. / Security fixes come at once. / Development tools have a lock of their own.|ranges in the source, exact versions in the lock/ {team} merges it/ notes link the changelogs
discovery|pandas, performance|Categoricals halved the memory of {table}/ Chunked reading keeps the {comp} below {mb}|Strings with few values took most of the space. / Types are declared when reading. / The job runs {pct} % faster.|usecols before anything else/ parquet instead of csv/ check dtypes in a test
change|python, async|{comp} talks to its {n} upstreams concurrently/ Concurrency limit of the {comp} is {n}|A semaphore protects the partners. / Total time went down to {ms}. / Timeouts are per call and for the whole.|gather with results in order/ one client per process/ back-off with jitter
howto|python, notebooks|Notebooks of {team} are converted before review/ Running the {comp} notebook on a schedule|Outputs are stripped, parameters are in the first cell. / Results land in the {table} table.|papermill with a date/ one kernel per project/ plots go to the wiki
decision|testing, pytest|Fixtures for {table} build the smallest row/ Tests of the {comp} use a real database|Mocks agreed with the code and not with the server. / Each test rolls back. / The suite takes {n} seconds.|factories, not dumps/ no order between tests/ freeze the clock in one place
feature|testing, property|Property tests for {fn}/ Random inputs found two gaps in {fn}|Round trips and invariants instead of examples. / Shrunken cases are kept as regression tests. / {n} cases per run, more at night.|seeds are printed/ deadline is off in CI/ generators live next to the types
decision|testing, e2e|Only {n} end-to-end tests for the {comp}/ Browser tests of the {comp} run against {env}|Each covers a path that earns money. / Selectors are roles and labels. / Videos are kept for failures only.|no sleeps/ data is created through the API/ retries are off
decision|testing, snapshots|No snapshots for the {comp}/ Golden files for {fn}|They were approved without looking. / Important fields are asserted by name. / Golden files have a command that writes them anew.|one file per case/ diffs are short/ reviewers read them
decision|sql, index|Partial index on {table} for open rows/ Index on {table}({col}, id) for paging|The planner used a sequential scan for {pct} % of the calls. / Explain before and after is in the ticket. / Writes became {ms} slower in the worst case.|keyset instead of offset/ analyze after loading/ unused ones are dropped each quarter
decision|sql, schema|{table} keeps history in a second table/ Soft delete for {table}, with a view on top|Finance needs the state of any day. / A trigger writes the old row. / Rows older than {n} months go to the archive.|valid_from and valid_to/ the view hides deleted rows/ no cascade
change|sql, partitioning|{table} is partitioned by month/ Old partitions of {table} are detached on {day}|Vacuum no longer touches cold data. / Queries have to name the month to be pruned. / {who} wrote the job that creates them ahead.|{n} partitions ahead/ default partition raises an alert/ indexes per partition
howto|postgres, backup|Restoring {table} to a point in time/ Backup of the {comp} is tested every month|Restore to a side instance, then copy the rows. / The drill took {n} minutes in {month}. / Only {team} has the credentials.|base backup nightly, logs each minute/ checksums are compared/ the runbook lists names
discovery|postgres, planner|Statistics target for {table}.{col} raised/ A rewritten join made the {comp} report fast|Estimates were off by a factor of {n}. / Extended statistics on both columns fixed the plan. / The report needs {ms} instead of minutes.|explain (analyze, buffers)/ no hints/ prepared statements use generic plans later
feature|postgres, queue|{comp} uses a table as its queue/ Workers of the {comp} skip rows that others hold|skip locked gives each worker its own rows. / Up to {n} per second, which is plenty. / Finished rows are deleted in batches.|notify wakes the workers/ attempts are counted/ dead rows go to a second table
decision|sqlite, embedded|{comp} keeps its state in SQLite/ One file per tenant for the {comp}|There is one writer and a backup is a file. / {mb} after two years. / Schema changes are numbered scripts.|foreign keys on/ strict tables/ vacuum on {day}
feature|redis, cache|{comp} caches {table} for {n} minutes/ Cache keys of the {comp} contain the schema version|Hit rate is {pct} points higher. / Entries are dropped by tag when an editor saves. / Misses are computed once, others wait.|no cache for signed-in users/ compression above 1 kB/ jitter on the lifetime
decision|redis, sessions|Sessions of {project} are in Redis, not in cookies/ Session lifetime is {n} hours|Signing out everywhere is one delete. / Replication is enough, losing sessions is acceptable. / {team} asked for shorter lifetimes in {env}.|ids are rotated on login/ nothing but ids in the cookie/ hash per user
decision|http, api|{comp} API: errors have a code and a hint/ Paging by cursor in the {comp} API|Clients parsed messages before. / Codes are documented and never reused. / Version {ver} is frozen.|{hdr} on every answer/ 409 for conflicts, 422 for content/ links are relative
feature|http, retry|Client of the {comp} retries only idempotent calls/ Retry budget for the {comp}: {pct} %|Retries made an outage worse in {month}. / The budget is shared by all calls of a process. / {hdr} is honoured.|exponential with full jitter/ at most {n} tries/ counted as {met}
feature|http, limits|Rate limits of the {comp} per key/ Upload limit of the {comp} is {mb}|Token bucket, refilled each second. / Limits are in the answer's headers. / {team} can raise them for a customer.|429 with {hdr}/ burst of {n}/ exempt: health checks
change|security, secrets|Secrets of the {comp} come from the store at start/ Keys of the {comp} rotate every {n} days|Nothing is left in the environment of the build. / Two keys are valid during a rotation. / {who} tested the rotation in {env}.|names, not values, in the configuration/ audit log on each read/ break-glass account is sealed
decision|security, auth|{comp} accepts tokens of the identity provider only/ Roles of the {comp}: viewer, editor, owner|Local accounts are gone since {ver}. / Groups map to roles in one table. / Service accounts have an owner.|audience is checked/ clock skew of 30 s/ deny by default
discovery|security, headers|Content security policy of the {comp} without inline scripts/ Cookies of {project} are SameSite=Lax|Reports were collected for {n} days before it was enforced. / Two vendors had to change their snippet.|nonce per response/ report-to endpoint is sampled/ frame-ancestors none
feature|tls, certificates|Certificates of {env} are issued by our own authority/ Internal names of the {comp} get short certificates|Lifetime is {n} days and renewal is automatic. / The trust bundle is part of the base image. / An alert fires a week ahead.|keys never leave the host/ names by service/ ACME inside
feature|monitoring, alerts|Alert on {met}, not on processor load/ {comp}: burn-rate alerts|Pages at night went down to {n} in a month. / Each alert links a runbook. / Symptoms page, causes only inform.|two windows: 1 h and 6 h/ silence needs a reason/ {team} reviews on {day}
feature|tracing, logs|Traces of the {comp} cross the queue/ Sampling: {pct} % of normal calls, all slow ones|The context travels in the message. / Slow means above {ms}. / It showed that {fn} waits for {table}.|{hdr} links logs and traces/ spans have low-cardinality names/ kept {n} days
howto|incident, runbook|Runbook: {comp} is slow/ What to do if {met} rises in {env}|First look at the board, then at the last deployment. / Rolling back is always allowed. / {team} is asked after {n} minutes.|one person talks, one acts/ write times down/ review within a week
discovery|incident, review|Outage of {month}: the {comp} overloaded {table}/ Review: a deploy of {project} {ver} without a flag|A batch ran during the day because of summer time. / Detection took {n} minutes. / Three actions, all done.|schedule in UTC/ batches yield to traffic/ drill planned
decision|kubernetes, resources|Requests of the {comp} come from the p95 of two weeks/ No CPU limits for the {comp}|Throttling added {ms} to calls. / Memory request equals limit. / {team} reviews the numbers each quarter.|autoscaling on {met}/ at least {n} replicas/ spread over zones
change|kubernetes, rollout|{comp} rolls out by canary/ Rollout of the {comp}: {pct} % for {n} minutes, then all|The analysis compares {met} of both groups. / Abort is automatic. / Database changes go one release ahead.|one canary at a time/ sticky by tenant/ promotion in the log
decision|kubernetes, charts|One chart for all services of {project}/ Values of the {comp} per environment|{n} copies had drifted apart. / Differences are only sizes and names. / Rendered manifests are shown in review.|no logic in values/ schema for values/ pinned chart version
decision|terraform, modules|Module for the {comp}, versioned/ State of {env} is split by team|Plans became readable and take {ms} less per resource. / Modules have examples that are applied in tests. / {who} approves moves.|moved blocks instead of imports/ outputs are documented/ no providers in modules
change|terraform, tags|All resources of {project} carry owner and cost centre/ Naming scheme for the {comp}: project-env-kind|The bill could not be attributed before. / Default tags in the provider. / {n} leftovers were deleted.|policy check in the plan/ lower case only/ names fit 32 characters
feature|aws, storage|Lifecycle rules for the {comp} bucket/ Reports older than {n} months move to cold storage|Saves {pct} % of the bill. / Restores take hours, which {team} accepts. / Versioning stays on.|multipart leftovers after 7 days/ inventory weekly/ encryption with our key
decision|queue, messaging|Events of the {comp} have a version and a key/ Order per customer only in the {comp}|Consumers ignore unknown fields. / The key is {col}. / Replays go to a second topic.|schema in the registry/ {n} partitions/ keep 14 days
feature|queue, outbox|Outbox for {table}/ Events of the {comp} leave through an outbox|Row and event are committed together. / A relay sends them in order, {n} per batch. / Consumers drop duplicates by id.|delay below {ms}/ cleaned after 3 days/ metric {met}
howto|make, tasks|make help lists the tasks of {project}/ Targets of the {comp}: test, lint, run, seed|The first thing newcomers type. / Variables are documented on top. / CI calls the same targets.|phony targets are declared/ V=1 shows commands/ included files in mk/
change|cmake, build|Presets for the {comp}: debug, release, tsan/ {comp} builds with Ninja and ccache|Warm builds take {n} seconds. / Toolchain files are per board. / Sanitizers are a preset of their own.|compile_commands.json is linked/ no globs/ options have a prefix
discovery|c, embedded|{fn} fits in the interrupt's time budget/ Stack of the {comp} task is {n} kB|Measured with a pin and a scope. / The table is in flash, not in RAM. / {pct} % head room at the highest rate.|no malloc after start/ watermark is logged/ -Os for the driver
decision|c++, style|{comp} passes spans and views/ No exceptions in the {comp}|Ownership is visible in signatures. / Results carry an error code. / {who} wrote the guide and the checks.|clang-tidy decides/ headers are self-contained/ one class per file
feature|go, service|{comp} shuts down gracefully/ Context deadlines in all calls of the {comp}|In-flight requests get {ms}. / Listeners close first. / Readiness turns off before.|errgroup for the parts/ no naked goroutines/ deadline from the caller
discovery|go, performance|sync.Pool in {fn} paid off/ Fewer allocations in {fn}: {pct} %|The encoder kept its buffer. / Benchmarks run on the same machine as before. / Tail latency fell to {ms}.|benchstat with ten runs/ pprof in {env}/ escape analysis in review
decision|java, spring|{comp} uses constructor injection only/ Records for the DTOs of the {comp}|Tests build objects without a container. / Mapping code shrank by {pct} %. / {team} agreed.|no field injection/ validation at the border/ immutable collections
change|java, gc|{comp} moved to ZGC/ Heap of the {comp} is sized from the container|Pauses went from {ms} to below one. / Throughput is {pct} % lower, which is fine. / Logs are kept for {n} days.|one collector everywhere/ measured with replayed traffic/ flags in one file
feature|i18n, texts|{lang} texts for the {comp}/ Plural rules in the {comp} for {lang}|Translators work in their tool, the sync runs on {day}. / Missing texts fall back to English and are counted. / Screenshots help them.|keys by meaning/ no concatenation/ {n} texts left
discovery|time, zones|{comp} stores UTC and shows local time/ Days of {table} end at midnight of the shop|Reports by day need the shop's zone. / Summer time days have 23 or 25 hours. / {fn} has tests for both.|zone is a column/ intervals are half open/ no offsets in the database
decision|money, numbers|Amounts in {table} are integers in minor units/ {fn} rounds half up, once|Finance defined the order of rounding. / Currencies have 0 to 3 digits. / Sums are checked against the ledger.|no floats/ currency next to amount/ tax per line
feature|search, ranking|Synonyms for the {comp}/ Typos in the {comp} search: one edit from four letters|The list comes from searches without a hit. / {pct} % fewer of them after {month}. / {team} edits it.|boost recent items/ stop words per language/ {n} test queries
decision|ml, evaluation|Evaluation of the {comp} on a frozen set/ {comp}: three seeds per experiment|Numbers were not comparable before. / The set has {n} thousand examples and is versioned. / Differences below one point are noise.|report mean and spread/ leak check by id/ cost per run is listed
change|ml, training|Mixed precision for the {comp}/ {comp} checkpoints every {n} minutes|Training is {pct} % faster with the same score. / Restarts lose little. / Old checkpoints are thinned out.|loss scaling is automatic/ seeds are stored/ config next to weights
feature|iot, protocol|{comp} batches samples for {ms}/ Uplink of the {comp} uses deltas|Data volume is {pct} % lower. / A full value is sent every {n} messages. / Order is restored by counter.|MQTT QoS 1/ topic per device/ retained only for state
feature|mobile, offline|{comp} works offline for {n} days/ Conflicts in the {comp}: the later edit wins per field|Edits are queued and replayed. / The server keeps both versions of texts. / Testers used flight mode on the train.|ids are made on the device/ queue is shown to the user/ photos wait for wifi
change|mail, reports|Mails of the {comp} are sent in the recipient's morning/ {comp} mails have a plain text part|Opening rate rose by {pct} %. / Bounces switch the address off after {n} times. / Templates are previewed with real data.|DKIM for both domains/ unsubscribe in the header/ no tracking pixels
decision|docs, writing|Docs of the {comp} start with an example/ Decision records for {project}|Readers leave after the first screen otherwise. / Records have context, decision and consequences. / {who} reviews wording.|present tense/ one page per task/ links are checked
gotcha|postgres, deadlock|deadlock detected between two batches on {table}/ SQLSTATE 40P01 when the {comp} and {fn} update {table}|Both took the same rows in a different order. / Rows are sorted by id before the update now. / The log of the server shows both statements.|order by id for update/ retry once/ batches of {n}
bugfix|postgres, isolation|could not serialize access due to concurrent update in the {comp}/ Serializable needs a retry loop in {fn}|SQLSTATE 40001 is expected under this level. / The whole transaction is repeated up to {n} times. / {who} found the missing loop.|repeat, do not resume/ no side effects inside/ counted as {met}
gotcha|node, http|ECONNRESET in the {comp} after {n} idle seconds/ socket hang up between the {comp} and its proxy|The proxy closes idle connections earlier than the client. / Keep-alive of the agent is below the proxy's now. / It only showed in {env}.|keepAliveTimeout above the balancer's/ retry idempotent calls/ not a network fault
gotcha|node, express|ERR_HTTP_HEADERS_SENT in {fn}/ The {comp} answered twice: headers already sent|A missing return after the redirect. / The linter rule for it is on. / Error handler checks headersSent.|return res.json(...)/ one exit per handler
bugfix|node, streams|ERR_STREAM_PREMATURE_CLOSE while exporting {table}/ Premature close in the {comp} download|The browser cancelled and nobody listened. / pipeline() cleans up both sides. / {n} warnings a day less.|AbortSignal from the request/ log at debug level
gotcha|node, promises|MaxListenersExceededWarning from the {comp}/ {fn} adds a listener per call|It is a leak, not a limit to raise. / The listener is removed in finally. / Found with {n} parallel uploads.|once() instead of on()/ trace with --trace-warnings
gotcha|browser, cors|CORS error in the {comp} hides a 500/ Preflight of the {comp} fails for {hdr}|The error page has no CORS header, so the browser reports that instead. / Look at the server's log first. / {hdr} is in the allow list.|OPTIONS is answered by the gateway/ max age {n} minutes
bugfix|react, hydration|Hydration failed in the {comp}: text differs/ Server and client of the {comp} rendered another date|The server formats in UTC and the browser in its own zone. / Dates are formatted after mount. / Warning only in development.|suppressHydrationWarning is no fix/ same locale on both
gotcha|react, hooks|Rendered more hooks than during the previous render in the {comp}/ Invalid hook call in the {comp}|An early return stood before the hook. / Two copies of a package are the other reason. / {who} added the lint rule.|hooks first, returns later/ dedupe the bundle
gotcha|kubernetes, pods|CrashLoopBackOff of the {comp} after the rename of a secret/ {comp} pods stay in CreateContainerConfigError|The key in the secret was renamed, not the reference. / describe shows it under Events. / Rolled back in {n} minutes.|kubectl describe pod/ secrets are checked by the chart test
gotcha|kubernetes, images|ImagePullBackOff for the {comp} in {env}/ New node pool cannot pull the {comp} image|The pull secret is per namespace. / The service account names it now. / The tag did exist.|imagePullSecrets on the account/ digest instead of tag
gotcha|kubernetes, probes|Liveness probe failed with 503 during migrations of {table}/ {comp}: probe kills slow starters|Start needs up to {n} minutes after an upgrade. / A startup probe covers it. / Restarts hid the reason.|failureThreshold times period/ no migration in the pod
gotcha|shell, sigpipe|Exit code 141 in {fn} is SIGPIPE/ pipefail and head: the {comp} script ends with 141|head closes the pipe early and pipefail reports the writer. / Read everything or turn pipefail off for that line.|128 + 13/ sed -n 1p reads to the end
gotcha|shell, grep|grep returns 1 without a match and set -e ends the {comp} script/ diff exits with 1: not an error in {fn}|Exit code 2 would be an error. / The script asks with if where no match is fine. / {who} lost {n} minutes.|if grep -q .../ set -e is off in conditions
gotcha|cron, time|Job of the {comp} ran twice at the end of summer time/ cron skipped {fn} in {month}|The hour exists twice or not at all. / Schedules are in UTC now. / A lock keeps the second run out.|flock -n/ the last run is stored in {table}
bugfix|cron, environment|{fn} worked by hand and not from cron/ Timer of the {comp} has another HOME|cron reads no profile, so variables were unset. / The unit lists what it needs. / Output went to a mail that nobody reads.|EnvironmentFile/ absolute paths/ log to the journal
gotcha|http, proxy|413 Request Entity Too Large for {mb} uploads/ Uploads to the {comp} end at {mb}|The ingress has a limit of its own. / Both limits are set from one value. / The client shows the limit before sending.|client_max_body_size/ chunked uploads from there on
gotcha|http, gateway|504 from the gateway after {n} s, the {comp} went on working/ 502 during deployments of the {comp}|The upstream finished, but nobody waited. / Long work returns 202 and an address to ask. / Connections drain before the stop.|preStop sleeps/ timeouts grow outwards
gotcha|python, gil|Threads did not make {fn} faster/ {comp}: processes instead of threads for {fn}|The work is pure Python, so one thread runs at a time. / A pool of {n} processes uses all cores. / Small tasks are grouped.|chunksize matters/ read-only data is shared by fork
bugfix|python, defaults|Mutable default argument in {fn}/ {fn} remembered rows of the call before|The list was created once. / The linter rule is on since {month}. / Test with two calls in a row.|None and create inside/ dataclasses: default_factory
gotcha|python, floats|0.1 + 0.2 in {fn}: use Decimal/ Sums of {table} differ by a cent|Binary floats cannot hold the amounts. / Decimal with two digits, rounding half up. / Finance confirmed {n} months.|quantize once/ strings into Decimal, no floats
gotcha|python, logging|Log lines of the {comp} appear twice/ basicConfig has no effect in the {comp}|A handler on the root and one on the logger. / A library had configured the root before. / dictConfig with one place.|propagate = False/ force=True in scripts
gotcha|pandas, merge|Merge of {table} multiplied rows/ SettingWithCopyWarning in {fn}|The key was not unique on the right side. / validate='one_to_one' raises now. / Row counts are asserted after each join.|drop_duplicates hides it/ use .loc
gotcha|django, queries|N+1 queries in the {comp} list/ {comp}: {n} queries for one page|The template touched a relation per row. / prefetch_related made it two queries. / A test pins the number.|assertNumQueries/ only() for wide rows
bugfix|django, signals|post_save of {table} ran {fn} in tests as well/ Signal handler of the {comp} fired twice|The module was imported under two names. / Signals were replaced by a call in the service. / {who} removed the rest.|dispatch_uid/ on_commit for mails
gotcha|rust, generics|E0277 in the {comp}: bound belongs on the method/ the trait bound is not satisfied for the row type in {fn}|The derive adds bounds to all parameters. / A manual impl removed them. / The message is long, its first line counts.|where clauses late/ PhantomData in the marker
gotcha|rust, lints|E0502 in {fn}: take the length first/ cannot borrow as mutable in {fn}: split the struct|Two fields are borrowed at once through self. / Destructuring gives both. / No clone was needed.|let Self { a, b } = self/ indices instead of references
bugfix|rust, tokio|Blocking call stalled the {comp} runtime/ {fn} starved timers for {ms}|File access on a worker thread. / spawn_blocking with a limit of {n}. / tokio-console showed it.|no std::fs in handlers/ busy tasks yield
gotcha|cargo, build|Build of {project} recompiles everything after each checkout/ incremental builds of the {comp} were lost|The build script looked at a folder that always changes. / rerun-if-changed names single files now. / Warm builds: {ms}.|cargo build -v says why/ mtime of restored caches
gotcha|typescript, types|TS2345 in generated code of the {comp}/ TS7053 in {fn}: index with a union|The generator is one version behind. / A satisfies check found the wrong keys. / No any was added.|keyof typeof table/ regenerate with {ver}
gotcha|typescript, enums|isolatedModules forbids const enums in the {comp}/ TS2748 with const enum from the {comp} package|They cannot be inlined across packages. / Replaced by a union. / {n} files changed.|export type for re-exports/ verbatimModuleSyntax
gotcha|git, hooks|pre-push of {project} ran the tests twice/ Hook manager of {project} ignores files outside src|husky and a local hook were both active. / One list in the repository. / Takes {ms}.|core.hooksPath/ skip in CI
gotcha|git, rebase|rerere replayed a wrong resolution in the {comp}/ Rebase of {n} commits asked for the same conflict each time|A recorded resolution was stale. / forget removes it for one path. / Squash first, then rebase.|git rerere forget PATH/ rebase.updateRefs
gotcha|docker, network|Container of the {comp} cannot reach the host/ {comp}: wrong MTU inside the VPN|host.docker.internal has to be added on Linux. / Large answers hung, small ones passed. / MTU {n}00 less than the link.|extra_hosts: host-gateway/ ping -M do -s
bugfix|docker, signals|{comp} ignored SIGTERM as PID 1/ Stop of the {comp} took 10 s|The shell form of CMD swallowed the signal. / exec form and a small init. / Stops in {ms} now.|docker run --init/ trap in scripts
gotcha|docker, layers|Deleting files in a later layer does not shrink the {comp} image/ dive showed {mb} of caches in the {comp}|Removal has to be in the same RUN. / Cache mounts do not end up in the image. / {pct} % smaller.|--mount=type=cache/ order of COPY
gotcha|terraform, state|Renaming a module would destroy the {comp}/ count to for_each moved {n} resources|moved blocks tell the new address. / The plan must say no changes. / {who} checks destroy in plans.|terraform state list/ never edit the state
gotcha|aws, permissions|AccessDenied on ListBucket although GetObject works/ AssumeRole of the {comp} needs the external id|A missing key without the list right looks like 403. / The policy has both statements. / Session lasts {n} minutes.|bucket and bucket/* are two resources/ simulate the policy
gotcha|kafka, consumers|Rebalance storm of the {comp}/ {comp} reads messages twice after max.poll.interval|Processing took longer than the interval. / Smaller polls of {n}. / Static membership for restarts.|commit after work/ lag is {met}
gotcha|redis, cluster|MOVED answers from the new redis/ CROSSSLOT in {fn}|The client was not in cluster mode. / Keys of one operation share a hash tag. / {n} commands were changed.|the tenant in braces/ no multi-key across slots
bugfix|java, threads|Thread pool of the {comp} rejected tasks/ RejectedExecutionException in the {comp} at noon|The queue holds {n} tasks. / Callers run the task when it is full. / Pool size follows {met}.|names for threads/ shutdown awaits
gotcha|go, loops|Loop variable captured in {fn}/ All goroutines of the {comp} saw the last session|Before 1.22 the variable is shared. / A copy inside the loop is enough. / vet finds most of them.|go vet -copylocks/ table tests with t.Parallel
gotcha|c, alignment|Unaligned access in {fn} on the old board/ SIGBUS in {fn} on ARM|A cast of the byte buffer to a struct. / memcpy is compiled to the same code. / Found with {n} captured frames.|no packed structs on the wire/ -fsanitize=alignment
gotcha|cmake, install|Installed {comp} loads libraries from the build tree/ RPATH of the {comp} after install|Build and install have different paths. / INSTALL_RPATH is relative to the origin. / {who} tests in an empty container.|readelf -d/ no LD_LIBRARY_PATH in units
gotcha|mobile, builds|Store rejected {ver}: build number not increased/ Push of the {comp} silent on new phones|The number comes from the commit count now. / Permission is asked since {ver}. / {n} testers confirmed.|version in one file/ test on a fresh install
gotcha|mqtt, devices|Retained messages revived old {comp} settings/ Two clients with one id throw each other out|An empty retained message deletes the topic. / The id contains the serial number. / Seen as {n} reconnects a minute.|clean session off/ last will says offline
gotcha|ml, metrics|nan loss after {n} steps in the {comp}/ Accuracy of the {comp} too good: leak between splits|Rows of one user were in both. / Splits are by user id now. / Gradient clipping and a warm-up fixed the rest.|detect_anomaly is slow/ check labels first
gotcha|csv, excel|Excel turned ids of {table} into dates/ Leading zeros lost in {fn}|Import with text columns, export as xlsx. / {team} got a template. / Semicolons for {lang} Excel.|BOM for Excel/ quote everything
gotcha|mail, delivery|Mails of the {comp} landed in spam/ SMTP 421: too many connections from the {comp}|The return path had no SPF. / At most {n} connections per host. / Reports arrive daily.|DMARC policy quarantine first/ warm up new addresses
decision|planning, scope|{comp}: what version {ver} leaves out/ No {lang} in the first release of the {comp}|Usage of the old one showed which parts matter. / {team} agreed to {n} cuts. / The list is reviewed in {month}.|cuts are written down/ nothing behind a hidden flag/ measured after a month
"""


def alternatives(text):
    return [part.strip() for part in re.split(r"/ ", text) if part.strip()]


def frames():
    for line in FRAMES.strip().split("\n"):
        kind, tags, titles, sentences, facts = line.split("|")
        yield kind, [tag.strip() for tag in tags.split(",")], alternatives(titles), alternatives(sentences), alternatives(facts)


def capital(text):
    return text[0].upper() + text[1:] if not re.match(r"[a-z]+[A-Z_]\w*", text) else text


def note(draw, frame, number):
    kind, tags, titles, sentences, facts = frame
    project = draw.choice(sorted(PROJECTS))
    comps, tables, functions = (alternatives(part) for part in PROJECTS[project])
    comp = draw.choice(comps)
    fixed = {"project": project, "comp": comp, "table": draw.choice(tables), "fn": draw.choice(functions),
             "flag": re.sub(r"\W+", "_", comp).lower() + draw.choice(["_v2", "_next", "_beta"])}

    def fill(text):
        def word(match):
            name = match[1]
            if name in fixed:
                return fixed[name]
            choice = draw.choice(alternatives(WORDS[name]))
            if name in ("who", "team", "month", "env", "ver", "lang", "hdr", "col", "met"):
                fixed[name] = choice
            return choice

        return re.sub(r"\{(\w+)\}", word, text).replace("the the ", "the ").replace("The the ", "The ").replace("a a ", "a ")

    row = {"id": f"note-{number:04}", "project": project, "date": f"2026-{draw.randint(1, 9):02}-{draw.randint(1, 28):02}",
           "type": {"howto": "discovery"}.get(kind, kind), "title": capital(fill(draw.choice(titles)))}
    length = draw.choice([1, 2, 2, 3])
    if draw.random() < 0.85:
        chosen = sorted(draw.sample(range(len(sentences)), min(length, len(sentences))))
        row["narrative"] = " ".join(capital(fill(sentences[place])) for place in chosen)
    wanted = draw.choice([1, 2, 2, 3, 3]) if "narrative" in row else 3
    row["facts"] = [fill(fact) for fact in draw.sample(facts, min(wanted, len(facts)))]
    if draw.random() < 0.3:
        row["subtitle"] = fill(draw.choice(["asked for by {team}", "measured in {env}", "since version {ver}", "discussed with {who}",
                                            "for the {comp} only", "revisit in {month}", "after the review of {month}", "see {fn}"]))
    row["concepts"] = tags + ([re.sub(r"\W+", "-", comp).lower()] if draw.random() < 0.5 else [])
    row["status"] = "approved"
    return row


def main():
    draw = random.Random(SEED)
    every = list(frames())
    rows, titles, tries = [], set(), 0
    while len(rows) < COUNT:
        tries += 1
        assert tries < 100_000
        row = note(draw, every[tries % len(every)], len(rows) + 1)
        if row["title"].lower() in titles:
            continue
        titles.add(row["title"].lower())
        rows.append(row)
    path = pathlib.Path(__file__).with_name("unrelated.jsonl")
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    print(len(rows), "notes,", path.stat().st_size // 1000, "kB,", len(every), "frames,", tries, "tries")


if __name__ == "__main__":
    main()
