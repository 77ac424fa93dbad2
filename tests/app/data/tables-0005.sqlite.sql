BEGIN TRANSACTION;
CREATE TABLE application_versions (
    version_id TEXT NOT NULL PRIMARY KEY,
    version_name TEXT NOT NULL UNIQUE,
    version_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    created_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
, "application_name" TEXT DEFAULT NULL);
INSERT INTO "application_versions" VALUES('02d4e498-c05b-4141-9673-3a4bccfbf9df','jobs-2',1795001564000,1795001564000,'valleyscope');
CREATE TABLE dbos_migrations (version INTEGER NOT NULL PRIMARY KEY);
INSERT INTO "dbos_migrations" VALUES(123);
CREATE TABLE notifications (
    message_uuid TEXT NOT NULL DEFAULT (hex(randomblob(16))) PRIMARY KEY,
    destination_uuid TEXT NOT NULL,
    topic TEXT,
    message TEXT NOT NULL,
    created_at_epoch_ms INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000), "serialization" TEXT DEFAULT NULL, "consumed" BOOLEAN NOT NULL DEFAULT FALSE, consumed_by_function_id INTEGER,
    FOREIGN KEY (destination_uuid) REFERENCES workflow_status(workflow_uuid) 
        ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE TABLE "operation_outputs" (
    workflow_uuid TEXT NOT NULL,
    function_id INTEGER NOT NULL,
    function_name TEXT NOT NULL DEFAULT '',
    output TEXT,
    error TEXT,
    child_workflow_id TEXT,
    started_at_epoch_ms INTEGER,
    completed_at_epoch_ms INTEGER,
    serialization TEXT,
    application_name TEXT DEFAULT NULL,
    retention_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    PRIMARY KEY (workflow_uuid, function_id)
);
CREATE TABLE queues (
    queue_id TEXT PRIMARY KEY DEFAULT (hex(randomblob(16))),
    name TEXT NOT NULL UNIQUE,
    concurrency INTEGER,
    worker_concurrency INTEGER,
    rate_limit_max INTEGER,
    rate_limit_period_sec REAL,
    priority_enabled BOOLEAN NOT NULL DEFAULT FALSE,
    partition_queue BOOLEAN NOT NULL DEFAULT FALSE,
    polling_interval_sec REAL NOT NULL DEFAULT 1.0,
    created_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    updated_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
, "application_name" TEXT DEFAULT NULL, "partition_concurrency" INTEGER DEFAULT NULL, "partition_worker_concurrency" INTEGER DEFAULT NULL, "partition_rate_limit_max" INTEGER DEFAULT NULL, "partition_rate_limit_period_sec" REAL DEFAULT NULL);
INSERT INTO "queues" VALUES('C144D794E5A7FFAE1587BD0ED06CC9DD','control',NULL,8,NULL,NULL,1,0,0.1,1795001564000,1795001564499,'valleyscope',NULL,NULL,NULL,NULL);
INSERT INTO "queues" VALUES('F1EE84E077FE3A66042C79F838F88F7E','gpu',NULL,1,NULL,NULL,1,0,0.2,1795001564000,1795001564506,'valleyscope',NULL,NULL,NULL,NULL);
CREATE TABLE streams (
    workflow_uuid TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    "offset" INTEGER NOT NULL, function_id INTEGER NOT NULL DEFAULT 0, "serialization" TEXT DEFAULT NULL,
    PRIMARY KEY (workflow_uuid, key, "offset"),
    FOREIGN KEY (workflow_uuid) REFERENCES workflow_status(workflow_uuid) 
        ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE TABLE valley_checkpoints (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(120) NOT NULL, 
	model TEXT NOT NULL, 
	dataset VARCHAR(400) NOT NULL, 
	size INTEGER NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	created FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE "valley_contributions" (
	experiment VARCHAR(32) NOT NULL, 
	worker VARCHAR(320) NOT NULL, 
	tasks INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	PRIMARY KEY (experiment, worker)
);
CREATE TABLE valley_events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	experiment VARCHAR(32) NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR(12) NOT NULL, 
	text TEXT NOT NULL
);
INSERT INTO "valley_events" VALUES(1,'1a1ee6e3d60ca39f',1.79500156451319909092e+09,'state','{"state":"queued","run":1}');
INSERT INTO "valley_events" VALUES(2,'1a1ee6e3d60ca39f',1.79500156452589392655e+09,'state','{"state":"cancelled","run":1,"error":null}');
INSERT INTO "valley_events" VALUES(3,'1a1ee6e3d748297f',1.79500156453292775146e+09,'state','{"state":"queued","run":1}');
CREATE TABLE valley_experiments (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(120) NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	stage VARCHAR(24) NOT NULL, 
	spec TEXT NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	"key" VARCHAR(255), 
	priority INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	created FLOAT NOT NULL, 
	started FLOAT, 
	finished FLOAT, 
	progress FLOAT NOT NULL, 
	seconds_left FLOAT, 
	error TEXT, 
	verdict_kind VARCHAR(40), 
	sentence TEXT, 
	cancel BOOLEAN NOT NULL, 
	deleted BOOLEAN NOT NULL, 
	UNIQUE (id), 
	UNIQUE ("key")
);
INSERT INTO "valley_experiments" VALUES(1,'1a1ee6e3d60ca39f','cancelled','cancelled','cancelled','{"name": "cancelled", "model": {"name": "mlp", "hidden": [8]}, "training": {"epochs": 3, "batch_size": 128}, "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}}, "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 2}}, "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9}}, "points": 5, "verdict": {"resamples": 100}}','ec477f41aa96e8748d57d5bdc8dc9f2cb7e31d3b29e32291c0d1fdba534abe6b',NULL,100,1,1.7950015645125043392e+09,NULL,1.79500156452547740939e+09,0.0,NULL,NULL,NULL,NULL,0,0);
INSERT INTO "valley_experiments" VALUES(2,'1a1ee6e3d748297f','waiting','queued','queued','{"name": "waiting", "model": {"name": "mlp", "hidden": [8]}, "training": {"epochs": 3, "batch_size": 128}, "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}}, "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 2}}, "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9}}, "points": 5, "verdict": {"resamples": 100}}','05dea1455f01a9e5978d20818b9a5539e09a1af4247bd589ac949c3fd1e51bb1',NULL,100,1,1.79500156453262281423e+09,NULL,NULL,0.0,NULL,NULL,NULL,NULL,0,0);
CREATE TABLE valley_identity (
	id VARCHAR(32) NOT NULL, 
	confirmed BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "valley_identity" VALUES('79cfa180e2045e2e708438ac3ec4fa98',1);
CREATE TABLE valley_processes (
	id VARCHAR(64) NOT NULL, 
	role VARCHAR(8) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	device VARCHAR(40) NOT NULL, 
	started FLOAT NOT NULL, 
	seen FLOAT NOT NULL, device_name VARCHAR(120), memory_used BIGINT, memory_total BIGINT, 
	PRIMARY KEY (id)
);
CREATE TABLE valley_task_attempts (
	experiment VARCHAR(32) NOT NULL, 
	run INTEGER NOT NULL, 
	task VARCHAR(160) NOT NULL, 
	attempts INTEGER NOT NULL, 
	crashes INTEGER NOT NULL, 
	share FLOAT NOT NULL, 
	crash_share FLOAT NOT NULL, 
	started FLOAT NOT NULL, 
	PRIMARY KEY (experiment, run, task)
);
CREATE TABLE valley_task_results (
	experiment VARCHAR(32) NOT NULL, 
	run INTEGER NOT NULL, 
	task VARCHAR(160) NOT NULL, 
	seconds FLOAT, 
	error TEXT, 
	payload BLOB, 
	PRIMARY KEY (experiment, run, task)
);
CREATE TABLE valley_version (
	version INTEGER NOT NULL, 
	suits INTEGER
);
INSERT INTO "valley_version" VALUES(1,1);
INSERT INTO "valley_version" VALUES(2,1);
INSERT INTO "valley_version" VALUES(3,1);
INSERT INTO "valley_version" VALUES(4,1);
INSERT INTO "valley_version" VALUES(5,5);
CREATE TABLE workflow_events (
    workflow_uuid TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL, "serialization" TEXT DEFAULT NULL,
    PRIMARY KEY (workflow_uuid, key),
    FOREIGN KEY (workflow_uuid) REFERENCES workflow_status(workflow_uuid) 
        ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE TABLE workflow_events_history (
    workflow_uuid TEXT NOT NULL,
    function_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL, "serialization" TEXT DEFAULT NULL,
    PRIMARY KEY (workflow_uuid, function_id, key),
    FOREIGN KEY (workflow_uuid) REFERENCES workflow_status(workflow_uuid)
        ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE TABLE workflow_input (
    workflow_uuid TEXT NOT NULL PRIMARY KEY,
    inputs TEXT,
    retention_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
);
INSERT INTO "workflow_input" VALUES('1a1ee6e3d748297f.1','gASVLgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZTZlM2Q3NDgyOTdmlEsBhpSMBmt3YXJnc5R9lHUu',1795001564000);
CREATE TABLE workflow_output (
    workflow_uuid TEXT NOT NULL PRIMARY KEY,
    output TEXT,
    error TEXT,
    retention_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
);
CREATE TABLE workflow_schedules (
    schedule_id TEXT PRIMARY KEY,
    schedule_name TEXT NOT NULL UNIQUE,
    workflow_name TEXT NOT NULL,
    workflow_class_name TEXT,
    schedule TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'ACTIVE',
    context TEXT NOT NULL
, "last_fired_at" TEXT DEFAULT NULL, "automatic_backfill" BOOLEAN NOT NULL DEFAULT FALSE, "cron_timezone" TEXT DEFAULT NULL, "queue_name" TEXT DEFAULT NULL, "application_name" TEXT DEFAULT NULL);
CREATE TABLE workflow_status (
    workflow_uuid TEXT PRIMARY KEY,
    status TEXT,
    name TEXT,
    authenticated_user TEXT,
    assumed_role TEXT,
    authenticated_roles TEXT,
    request TEXT,
    output TEXT,
    error TEXT,
    executor_id TEXT,
    created_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    updated_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    application_version TEXT,
    application_id TEXT,
    class_name TEXT DEFAULT NULL,
    config_name TEXT DEFAULT NULL,
    recovery_attempts INTEGER DEFAULT 0,
    queue_name TEXT,
    workflow_timeout_ms INTEGER,
    workflow_deadline_epoch_ms INTEGER,
    inputs TEXT,
    started_at_epoch_ms INTEGER,
    deduplication_id TEXT,
    priority INTEGER NOT NULL DEFAULT 0
, queue_partition_key TEXT, forked_from TEXT, "owner_xid" TEXT DEFAULT NULL, "parent_workflow_id" TEXT DEFAULT NULL, "serialization" TEXT DEFAULT NULL, "delay_until_epoch_ms" BIGINT DEFAULT NULL, "was_forked_from" BOOLEAN NOT NULL DEFAULT FALSE, "rate_limited" BOOLEAN NOT NULL DEFAULT FALSE, "completed_at" BIGINT, "attributes" TEXT, "schedule_name" TEXT, "debounce_deadline_epoch_ms" BIGINT DEFAULT NULL, "is_debounced" BOOLEAN NOT NULL DEFAULT FALSE, "application_name" TEXT DEFAULT NULL, "creator_xid" TEXT DEFAULT NULL);
INSERT INTO "workflow_status" VALUES('1a1ee6e3d748297f.1','ENQUEUED','experiment',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795001564000,1795001564000,'jobs-2',NULL,NULL,NULL,0,'control',NULL,NULL,NULL,NULL,NULL,101,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,NULL,'null',NULL,NULL,0,'valleyscope','cb9f5345-5252-4066-a343-aa2523a0b420');
CREATE INDEX valley_experiments_number ON valley_experiments (deleted, number);
CREATE INDEX valley_experiments_state ON valley_experiments (deleted, state, number);
CREATE INDEX valley_events_experiment ON valley_events (experiment, id);
CREATE INDEX workflow_status_created_at_index ON workflow_status (created_at);
CREATE INDEX idx_workflow_topic ON notifications (destination_uuid, topic);
CREATE INDEX "idx_workflow_status_delayed" ON "workflow_status" ("delay_until_epoch_ms") WHERE status = 'DELAYED';
CREATE INDEX "idx_workflow_status_forked_from" ON "workflow_status" ("forked_from") WHERE "forked_from" IS NOT NULL;
CREATE INDEX "idx_workflow_status_parent_workflow_id" ON "workflow_status" ("parent_workflow_id") WHERE "parent_workflow_id" IS NOT NULL;
CREATE UNIQUE INDEX "uq_workflow_status_dedup_id" ON "workflow_status" ("queue_name", "deduplication_id") WHERE "deduplication_id" IS NOT NULL;
CREATE INDEX "idx_workflow_status_pending" ON "workflow_status" ("created_at") WHERE "status" = 'PENDING';
CREATE INDEX "idx_workflow_status_failed" ON "workflow_status" ("status", "created_at") WHERE "status" IN ('ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED');
CREATE INDEX "idx_workflow_status_rate_limited" ON "workflow_status" ("queue_name", "started_at_epoch_ms") WHERE "rate_limited" = TRUE;
CREATE INDEX "idx_workflow_status_completed_at" ON "workflow_status" ("completed_at") WHERE "completed_at" IS NOT NULL;
CREATE INDEX "idx_workflow_status_started_at" ON "workflow_status" ("started_at_epoch_ms") WHERE "started_at_epoch_ms" IS NOT NULL;
CREATE INDEX "idx_workflow_status_schedule_name" ON "workflow_status" ("schedule_name") WHERE "schedule_name" IS NOT NULL;
CREATE UNIQUE INDEX "uq_application_versions_owner_version"
    ON application_versions ("application_name", "version_name")
    WHERE "application_name" IS NOT NULL;
CREATE UNIQUE INDEX "uq_application_versions_unclaimed_version"
    ON application_versions ("version_name")
    WHERE "application_name" IS NULL;
CREATE INDEX idx_workflow_input_retention
    ON workflow_input (retention_timestamp);
CREATE INDEX idx_workflow_output_retention
    ON workflow_output (retention_timestamp);
CREATE INDEX idx_operation_outputs_retention
    ON operation_outputs (retention_timestamp);
CREATE INDEX "idx_workflow_status_in_flight_v2" ON "workflow_status" ("queue_name", "status", "priority", "created_at", "application_name") WHERE "status" IN ('ENQUEUED', 'PENDING');
CREATE INDEX "idx_workflow_status_partition_dequeue_v3" ON "workflow_status" ("queue_name", "status", "queue_partition_key", "priority", "created_at", "workflow_uuid", "application_name") WHERE "status" IN ('ENQUEUED', 'PENDING') AND "queue_partition_key" IS NOT NULL;
CREATE INDEX "idx_operation_outputs_completed_at_function_name_v2" ON "operation_outputs" ("completed_at_epoch_ms", "function_name", "application_name");
CREATE INDEX "idx_workflow_status_deadline" ON "workflow_status" ("workflow_deadline_epoch_ms") WHERE "status" IN ('ENQUEUED', 'PENDING', 'DELAYED') AND "workflow_deadline_epoch_ms" IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('valley_experiments',2);
INSERT INTO "sqlite_sequence" VALUES('valley_events',3);
COMMIT;
