--
-- PostgreSQL database dump
--

\restrict umUz77CjOTSgDSpFoXwdHywWI5roq9lOw6XXLEP0B7reZwUmFa3DghJWbHgszZf

-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: dbos; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA dbos;


--
-- Name: enqueue_workflow(text, text, json[], json, text, text, text, text, bigint, bigint, text, integer, text, text, text, bigint, text); Type: FUNCTION; Schema: dbos; Owner: -
--

CREATE FUNCTION dbos.enqueue_workflow(workflow_name text, queue_name text, positional_args json[] DEFAULT ARRAY[]::json[], named_args json DEFAULT '{}'::json, class_name text DEFAULT NULL::text, config_name text DEFAULT NULL::text, workflow_id text DEFAULT NULL::text, app_version text DEFAULT NULL::text, timeout_ms bigint DEFAULT NULL::bigint, deadline_epoch_ms bigint DEFAULT NULL::bigint, deduplication_id text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, queue_partition_key text DEFAULT NULL::text, authenticated_user text DEFAULT NULL::text, authenticated_roles text DEFAULT NULL::text, delay_until_epoch_ms bigint DEFAULT NULL::bigint, application_name text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    v_workflow_id TEXT;
    v_serialized_inputs TEXT;
    v_owner_xid TEXT;
    v_now BIGINT;
    v_recovery_attempts INT4 := 0;
    v_priority INT4;
    v_status TEXT;
BEGIN

    -- Validate required parameters
    IF workflow_name IS NULL OR workflow_name = '' THEN
        RAISE EXCEPTION 'Workflow name cannot be null or empty';
    END IF;
    IF queue_name IS NULL OR queue_name = '' THEN
        RAISE EXCEPTION 'Queue name cannot be null or empty';
    END IF;
    IF named_args IS NOT NULL AND jsonb_typeof(named_args::jsonb) != 'object' THEN
        RAISE EXCEPTION 'Named args must be a JSON object';
    END IF;
    IF workflow_id IS NOT NULL AND workflow_id = '' THEN
        RAISE EXCEPTION 'Workflow ID cannot be an empty string if provided.';
    END IF;
    IF delay_until_epoch_ms IS NOT NULL AND delay_until_epoch_ms < 0 THEN
        RAISE EXCEPTION 'delay_until_epoch_ms must be >= 0';
    END IF;

    v_workflow_id := COALESCE(workflow_id, gen_random_uuid()::TEXT);
    v_owner_xid := gen_random_uuid()::TEXT;
    v_priority := COALESCE(priority, 0);
    v_serialized_inputs := json_build_object(
        'positionalArgs', positional_args,
        'namedArgs', named_args
    )::TEXT;
    v_now := EXTRACT(epoch FROM now()) * 1000;
    v_status := CASE WHEN delay_until_epoch_ms IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END;

    INSERT INTO "dbos".workflow_status (
        workflow_uuid, status,
        name, class_name, config_name,
        queue_name, deduplication_id, priority, queue_partition_key,
        application_version,
        created_at, updated_at, recovery_attempts,
        workflow_timeout_ms, workflow_deadline_epoch_ms,
        parent_workflow_id, owner_xid, serialization,
        authenticated_user, authenticated_roles,
        delay_until_epoch_ms, application_name
    ) VALUES (
        v_workflow_id, v_status,
        workflow_name, class_name, config_name,
        queue_name, deduplication_id, v_priority, queue_partition_key,
        app_version,
        v_now, v_now, v_recovery_attempts,
        timeout_ms, deadline_epoch_ms,
        NULL, v_owner_xid, 'portable_json',
        authenticated_user, authenticated_roles,
        delay_until_epoch_ms, application_name
    )
    ON CONFLICT (workflow_uuid)
    DO UPDATE SET
        updated_at = EXCLUDED.updated_at;

    INSERT INTO "dbos".workflow_input (
        workflow_uuid, inputs, retention_timestamp
    ) VALUES (
        v_workflow_id, v_serialized_inputs, v_now
    )
    ON CONFLICT (workflow_uuid) DO NOTHING;

    RETURN v_workflow_id;

EXCEPTION
    WHEN unique_violation THEN
        RAISE EXCEPTION 'DBOS queue duplicated'
            USING DETAIL = format('Workflow %s with queue %s and deduplication ID %s already exists', v_workflow_id, queue_name, deduplication_id),
                ERRCODE = 'unique_violation';
END;
$$;


--
-- Name: send_message(text, json, text, text); Type: FUNCTION; Schema: dbos; Owner: -
--

CREATE FUNCTION dbos.send_message(destination_id text, message json, topic text DEFAULT NULL::text, message_id text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    v_topic TEXT := COALESCE(topic, '__null__topic__');
    v_message_id TEXT := COALESCE(message_id, gen_random_uuid()::TEXT);
BEGIN
    INSERT INTO "dbos".notifications (
        destination_uuid, topic, message, message_uuid, serialization
    ) VALUES (
        destination_id, v_topic, message, v_message_id, 'portable_json'
    )
    ON CONFLICT (message_uuid) DO NOTHING;
EXCEPTION
    WHEN foreign_key_violation THEN
        RAISE EXCEPTION 'DBOS non-existent workflow'
            USING DETAIL = format('Destination workflow %s does not exist', destination_id),
                ERRCODE = 'foreign_key_violation';
END;
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: application_versions; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.application_versions (
    version_id text NOT NULL,
    version_name text NOT NULL,
    version_timestamp bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL,
    created_at bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL,
    application_name text
);


--
-- Name: dbos_migrations; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.dbos_migrations (
    version bigint NOT NULL
);


--
-- Name: event_dispatch_kv; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.event_dispatch_kv (
    service_name text NOT NULL,
    workflow_fn_name text NOT NULL,
    key text NOT NULL,
    value text,
    update_seq numeric(38,0),
    update_time numeric(38,15)
);


--
-- Name: notifications; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.notifications (
    message_uuid text DEFAULT gen_random_uuid() NOT NULL,
    destination_uuid text NOT NULL,
    topic text,
    message text NOT NULL,
    created_at_epoch_ms bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL,
    serialization text,
    consumed boolean DEFAULT false NOT NULL,
    consumed_by_function_id integer
);


--
-- Name: operation_outputs; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.operation_outputs (
    workflow_uuid text NOT NULL,
    function_id integer NOT NULL,
    function_name text DEFAULT ''::text NOT NULL,
    output text,
    error text,
    child_workflow_id text,
    started_at_epoch_ms bigint,
    completed_at_epoch_ms bigint,
    serialization text,
    application_name text,
    retention_timestamp bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL
);


--
-- Name: queues; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.queues (
    queue_id text DEFAULT (gen_random_uuid())::text NOT NULL,
    name text NOT NULL,
    concurrency integer,
    worker_concurrency integer,
    rate_limit_max integer,
    rate_limit_period_sec double precision,
    priority_enabled boolean DEFAULT false NOT NULL,
    partition_queue boolean DEFAULT false NOT NULL,
    polling_interval_sec double precision DEFAULT 1.0 NOT NULL,
    created_at bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL,
    updated_at bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL,
    application_name text,
    partition_concurrency integer,
    partition_worker_concurrency integer,
    partition_rate_limit_max integer,
    partition_rate_limit_period_sec double precision
);


--
-- Name: streams; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.streams (
    workflow_uuid text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    "offset" integer NOT NULL,
    function_id integer DEFAULT 0 NOT NULL,
    serialization text
);


--
-- Name: workflow_events; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.workflow_events (
    workflow_uuid text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    serialization text
);


--
-- Name: workflow_events_history; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.workflow_events_history (
    workflow_uuid text NOT NULL,
    function_id integer NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    serialization text
);


--
-- Name: workflow_input; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.workflow_input (
    workflow_uuid text NOT NULL,
    inputs text,
    retention_timestamp bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL
);


--
-- Name: workflow_output; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.workflow_output (
    workflow_uuid text NOT NULL,
    output text,
    error text,
    retention_timestamp bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL
);


--
-- Name: workflow_schedules; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.workflow_schedules (
    schedule_id text NOT NULL,
    schedule_name text NOT NULL,
    workflow_name text NOT NULL,
    workflow_class_name text,
    schedule text NOT NULL,
    status text DEFAULT 'ACTIVE'::text NOT NULL,
    context text NOT NULL,
    last_fired_at text,
    automatic_backfill boolean DEFAULT false NOT NULL,
    cron_timezone text,
    queue_name text,
    application_name text
);


--
-- Name: workflow_status; Type: TABLE; Schema: dbos; Owner: -
--

CREATE TABLE dbos.workflow_status (
    workflow_uuid text NOT NULL,
    status text,
    name text,
    authenticated_user text,
    assumed_role text,
    authenticated_roles text,
    request text,
    output text,
    error text,
    executor_id text,
    created_at bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL,
    updated_at bigint DEFAULT ((EXTRACT(epoch FROM now()) * 1000.0))::bigint NOT NULL,
    application_version text,
    application_id text,
    class_name character varying(255) DEFAULT NULL::character varying,
    config_name character varying(255) DEFAULT NULL::character varying,
    recovery_attempts bigint DEFAULT 0,
    queue_name text,
    workflow_timeout_ms bigint,
    workflow_deadline_epoch_ms bigint,
    inputs text,
    started_at_epoch_ms bigint,
    deduplication_id text,
    priority integer DEFAULT 0 NOT NULL,
    queue_partition_key text,
    forked_from text,
    owner_xid text,
    parent_workflow_id text,
    serialization text,
    delay_until_epoch_ms bigint,
    was_forked_from boolean DEFAULT false NOT NULL,
    rate_limited boolean DEFAULT false NOT NULL,
    completed_at bigint,
    attributes jsonb,
    schedule_name text,
    debounce_deadline_epoch_ms bigint,
    is_debounced boolean DEFAULT false NOT NULL,
    application_name text,
    creator_xid text
);


--
-- Name: valley_checkpoints; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.valley_checkpoints (
    id character varying(32) NOT NULL,
    name character varying(120) NOT NULL,
    model text NOT NULL,
    dataset character varying(400) NOT NULL,
    size bigint NOT NULL,
    sha256 character varying(64) NOT NULL,
    created double precision NOT NULL
);


--
-- Name: valley_events; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.valley_events (
    id bigint NOT NULL,
    experiment character varying(32) NOT NULL,
    at double precision NOT NULL,
    kind character varying(12) NOT NULL,
    text text NOT NULL
);


--
-- Name: valley_events_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.valley_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: valley_events_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.valley_events_id_seq OWNED BY public.valley_events.id;


--
-- Name: valley_experiments; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.valley_experiments (
    number bigint NOT NULL,
    id character varying(32) NOT NULL,
    name character varying(120) NOT NULL,
    state character varying(12) NOT NULL,
    stage character varying(24) NOT NULL,
    spec text NOT NULL,
    digest character varying(64) NOT NULL,
    key character varying(255),
    priority integer NOT NULL,
    run integer NOT NULL,
    created double precision NOT NULL,
    started double precision,
    finished double precision,
    progress double precision NOT NULL,
    seconds_left double precision,
    error text,
    verdict_kind character varying(40),
    sentence text,
    cancel boolean NOT NULL,
    deleted boolean NOT NULL,
    conductor character varying(64)
);


--
-- Name: valley_experiments_number_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.valley_experiments_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: valley_experiments_number_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.valley_experiments_number_seq OWNED BY public.valley_experiments.number;


--
-- Name: valley_hands; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.valley_hands (
    experiment character varying(32) NOT NULL,
    worker character varying(320) NOT NULL,
    tasks integer NOT NULL,
    seconds double precision NOT NULL
);


--
-- Name: valley_identity; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.valley_identity (
    id character varying(32) NOT NULL,
    confirmed boolean NOT NULL
);


--
-- Name: valley_processes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.valley_processes (
    id character varying(64) NOT NULL,
    role character varying(8) NOT NULL,
    host character varying(255) NOT NULL,
    pid integer NOT NULL,
    device character varying(40) NOT NULL,
    started double precision NOT NULL,
    seen double precision NOT NULL,
    device_name character varying(120),
    memory_used bigint,
    memory_total bigint
);


--
-- Name: valley_tasks; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.valley_tasks (
    experiment character varying(32) NOT NULL,
    task character varying(160) NOT NULL,
    kind character varying(16) NOT NULL,
    state character varying(12) NOT NULL,
    priority integer NOT NULL,
    issue integer NOT NULL,
    attempts integer NOT NULL,
    deaths integer NOT NULL,
    share double precision NOT NULL,
    death_share double precision NOT NULL,
    owner character varying(64),
    queued double precision NOT NULL,
    started double precision,
    seconds double precision,
    error text,
    result bytea
);


--
-- Name: valley_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.valley_version (
    version integer NOT NULL,
    suits integer
);


--
-- Name: valley_events id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_events ALTER COLUMN id SET DEFAULT nextval('public.valley_events_id_seq'::regclass);


--
-- Name: valley_experiments number; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_experiments ALTER COLUMN number SET DEFAULT nextval('public.valley_experiments_number_seq'::regclass);


--
-- Data for Name: application_versions; Type: TABLE DATA; Schema: dbos; Owner: -
--

INSERT INTO dbos.application_versions VALUES ('dfe8acda-5b75-4ba7-8669-3a2bb9efc5ab', 'jobs-1', 1794987286490, 1794987286490, 'valleyscope');


--
-- Data for Name: dbos_migrations; Type: TABLE DATA; Schema: dbos; Owner: -
--

INSERT INTO dbos.dbos_migrations VALUES (123);


--
-- Data for Name: event_dispatch_kv; Type: TABLE DATA; Schema: dbos; Owner: -
--



--
-- Data for Name: notifications; Type: TABLE DATA; Schema: dbos; Owner: -
--



--
-- Data for Name: operation_outputs; Type: TABLE DATA; Schema: dbos; Owner: -
--



--
-- Data for Name: queues; Type: TABLE DATA; Schema: dbos; Owner: -
--

INSERT INTO dbos.queues VALUES ('f4decfa4-3fe0-40a5-8eba-113b9c31c2fa', 'control', NULL, 8, NULL, NULL, true, false, 1, 1794987286519, 1794987286515, 'valleyscope', NULL, NULL, NULL, NULL);
INSERT INTO dbos.queues VALUES ('940d77f0-3c78-4064-bf7f-8a8a387f9295', 'gpu', NULL, 1, NULL, NULL, true, false, 0.08, 1794987286526, 1794987291521, 'valleyscope', NULL, NULL, NULL, NULL);


--
-- Data for Name: streams; Type: TABLE DATA; Schema: dbos; Owner: -
--



--
-- Data for Name: workflow_events; Type: TABLE DATA; Schema: dbos; Owner: -
--



--
-- Data for Name: workflow_events_history; Type: TABLE DATA; Schema: dbos; Owner: -
--



--
-- Data for Name: workflow_input; Type: TABLE DATA; Schema: dbos; Owner: -
--

INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15.1', 'gASVLgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lEsBhpSMBmt3YXJnc5R9lHUu', 1794987286546);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:train:sgd:1', 'gASVOgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwJdHJhaW46c2dklEsBh5SMBmt3YXJnc5R9lHUu', 1794987286608);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:train:altsdp:1', 'gASVPQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwMdHJhaW46YWx0c2RwlEsBh5SMBmt3YXJnc5R9lHUu', 1794987286608);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:fit:valley:1', 'gASVOwAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwKZml0OnZhbGxleZRLAYeUjAZrd2FyZ3OUfZR1Lg==', 1794987289410);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:line:sgd-altsdp:1', 'gASVQAAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwPbGluZTpzZ2QtYWx0c2RwlEsBh5SMBmt3YXJnc5R9lHUu', 1794987289410);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:sharpness:sgd:1', 'gASVPgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwNc2hhcnBuZXNzOnNnZJRLAYeUjAZrd2FyZ3OUfZR1Lg==', 1794987289410);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:sharpness:altsdp:1', 'gASVQQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwQc2hhcnBuZXNzOmFsdHNkcJRLAYeUjAZrd2FyZ3OUfZR1Lg==', 1794987289410);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:frame:valley:1', 'gASVPQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwMZnJhbWU6dmFsbGV5lEsBh5SMBmt3YXJnc5R9lHUu', 1794987289617);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:curve:valley:1', 'gASVPQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwMY3VydmU6dmFsbGV5lEsBh5SMBmt3YXJnc5R9lHUu', 1794987289617);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:surface:valley:0:1', 'gASVQQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwQc3VyZmFjZTp2YWxsZXk6MJRLAYeUjAZrd2FyZ3OUfZR1Lg==', 1794987289813);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:surface:valley:1:1', 'gASVQQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwQc3VyZmFjZTp2YWxsZXk6MZRLAYeUjAZrd2FyZ3OUfZR1Lg==', 1794987289813);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94600cffd15:verdict:experiment:1', 'gASVQwAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NjAwY2ZmZDE1lIwSdmVyZGljdDpleHBlcmltZW50lEsBh5SMBmt3YXJnc5R9lHUu', 1794987289813);
INSERT INTO dbos.workflow_input VALUES ('1a1ed94737576bec.1', 'gASVLgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NzM3NTc2YmVjlEsBhpSMBmt3YXJnc5R9lHUu', 1794987291514);
INSERT INTO dbos.workflow_input VALUES ('1a1ed947383883f0.1', 'gASVLgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NzM4Mzg4M2YwlEsBhpSMBmt3YXJnc5R9lHUu', 1794987291526);
INSERT INTO dbos.workflow_input VALUES ('1a1ed947383883f0:train:sgd:1', 'gASVOgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NzM4Mzg4M2YwlIwJdHJhaW46c2dklEsBh5SMBmt3YXJnc5R9lHUu', 1794987291544);
INSERT INTO dbos.workflow_input VALUES ('1a1ed947383883f0:train:altsdp:1', 'gASVPQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NzM4Mzg4M2YwlIwMdHJhaW46YWx0c2RwlEsBh5SMBmt3YXJnc5R9lHUu', 1794987291544);


--
-- Data for Name: workflow_output; Type: TABLE DATA; Schema: dbos; Owner: -
--

INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:train:sgd:1', 'gAROLg==', NULL, 1794987289327);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:train:altsdp:1', 'gAROLg==', NULL, 1794987289373);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:fit:valley:1', 'gAROLg==', NULL, 1794987289513);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:line:sgd-altsdp:1', 'gAROLg==', NULL, 1794987289545);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:sharpness:sgd:1', 'gAROLg==', NULL, 1794987289617);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:sharpness:altsdp:1', 'gAROLg==', NULL, 1794987289709);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:frame:valley:1', 'gAROLg==', NULL, 1794987289737);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:curve:valley:1', 'gAROLg==', NULL, 1794987289773);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:surface:valley:0:1', 'gAROLg==', NULL, 1794987289977);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:surface:valley:1:1', 'gAROLg==', NULL, 1794987290045);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15:verdict:experiment:1', 'gAROLg==', NULL, 1794987290069);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94600cffd15.1', 'gAROLg==', NULL, 1794987290887);
INSERT INTO dbos.workflow_output VALUES ('1a1ed94737576bec.1', 'gAROLg==', NULL, 1794987291540);


--
-- Data for Name: workflow_schedules; Type: TABLE DATA; Schema: dbos; Owner: -
--



--
-- Data for Name: workflow_status; Type: TABLE DATA; Schema: dbos; Owner: -
--

INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:train:sgd:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987286608, 1794987289327, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987287331, NULL, 1000000111, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987289327, 'null', NULL, NULL, false, 'valleyscope', '1a8c3cfb-eb7e-45bc-b6fd-55b0043a8a30');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:train:altsdp:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987286608, 1794987289373, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987289327, NULL, 1000000111, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987289373, 'null', NULL, NULL, false, 'valleyscope', '340cb44f-1012-46e7-ac7d-00873158fc89');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:fit:valley:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987289410, 1794987289513, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987289460, NULL, 1000000121, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987289513, 'null', NULL, NULL, false, 'valleyscope', 'ad95b85b-8ad7-4077-8a52-3dcc3792960e');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:line:sgd-altsdp:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987289410, 1794987289545, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987289514, NULL, 1000000151, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987289545, 'null', NULL, NULL, false, 'valleyscope', '1b1dc37f-a1d4-4939-8945-db05afbeb218');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:sharpness:sgd:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987289410, 1794987289617, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987289546, NULL, 1000000152, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987289617, 'null', NULL, NULL, false, 'valleyscope', '4e83b494-b066-4d87-8c1f-e76f9c2185fd');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:sharpness:altsdp:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987289410, 1794987289709, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987289620, NULL, 1000000152, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987289709, 'null', NULL, NULL, false, 'valleyscope', '33cd9a39-e902-4a66-9b68-5ad44ff7b5ee');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:frame:valley:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987289617, 1794987289737, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987289711, NULL, 1000000131, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987289737, 'null', NULL, NULL, false, 'valleyscope', '4a9d3ea9-02e8-422a-b10b-75680e1961f4');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:curve:valley:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987289617, 1794987289773, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987289738, NULL, 1000000151, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987289773, 'null', NULL, NULL, false, 'valleyscope', 'a20201a8-8b4f-45cf-9b81-b27ea7fa9308');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:surface:valley:0:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987289813, 1794987289977, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987289861, NULL, 1000000141, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987289977, 'null', NULL, NULL, false, 'valleyscope', '32d7b8b6-9e0f-4941-b387-70170b9b2478');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:surface:valley:1:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987289813, 1794987290045, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987289978, NULL, 1000000141, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987290045, 'null', NULL, NULL, false, 'valleyscope', '7a2b640d-ebec-41bd-ae8b-3c3304b197f9');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15:verdict:experiment:1', 'SUCCESS', 'task', NULL, NULL, NULL, NULL, NULL, NULL, 'worker-23922-0a2994ce4781', 1794987289813, 1794987290069, 'jobs-1', NULL, NULL, NULL, 1, 'gpu', NULL, NULL, NULL, 1794987290046, NULL, 1000000161, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987290069, 'null', NULL, NULL, false, 'valleyscope', '39bb9dab-4f31-42e7-9606-078cb1365efa');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94600cffd15.1', 'SUCCESS', 'experiment', NULL, NULL, NULL, NULL, NULL, NULL, 'api-23899-4e3a23d3cdca', 1794987286546, 1794987290887, 'jobs-1', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987290887, 'null', NULL, NULL, false, 'valleyscope', '3b050900-66b4-49ec-b475-74858dfd884d');
INSERT INTO dbos.workflow_status VALUES ('1a1ed94737576bec.1', 'SUCCESS', 'experiment', NULL, NULL, NULL, NULL, NULL, NULL, 'api-23899-4e3a23d3cdca', 1794987291514, 1794987291540, 'jobs-1', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, 1794987291540, 'null', NULL, NULL, false, 'valleyscope', 'cbe582f5-d04e-4c31-a4de-1b478ec3f82c');
INSERT INTO dbos.workflow_status VALUES ('1a1ed947383883f0:train:sgd:1', 'ENQUEUED', 'task', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1794987291544, 1794987291544, 'jobs-1', NULL, NULL, NULL, 0, 'gpu', NULL, NULL, NULL, NULL, NULL, 1000000311, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, NULL, 'null', NULL, NULL, false, 'valleyscope', '70d09c62-90bf-4823-9424-6f9d3287f1b2');
INSERT INTO dbos.workflow_status VALUES ('1a1ed947383883f0:train:altsdp:1', 'ENQUEUED', 'task', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1794987291544, 1794987291544, 'jobs-1', NULL, NULL, NULL, 0, 'gpu', NULL, NULL, NULL, NULL, NULL, 1000000311, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, NULL, 'null', NULL, NULL, false, 'valleyscope', 'd768241a-0c8a-4180-b8ee-7ebd9c893b9d');
INSERT INTO dbos.workflow_status VALUES ('1a1ed947383883f0.1', 'ENQUEUED', 'experiment', NULL, NULL, NULL, NULL, NULL, NULL, 'api-23899-4e3a23d3cdca', 1794987291526, 1794987293508, 'jobs-1', '', NULL, NULL, 0, 'control', NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 'py_pickle', NULL, false, false, NULL, 'null', NULL, NULL, false, 'valleyscope', 'e3446408-6ebd-4993-8975-fb14d87390d0');


--
-- Data for Name: valley_checkpoints; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: valley_events; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.valley_events VALUES (1, '1a1ed94600cffd15', 1794987286.5423317, 'state', '{"state":"queued","run":1}');
INSERT INTO public.valley_events VALUES (3, '1a1ed94600cffd15', 1794987287.364674, 'state', '{"state":"running","run":1}');
INSERT INTO public.valley_events VALUES (5, '1a1ed94600cffd15', 1794987289.3237286, 'epoch', '{"minimum":"sgd","epochs":3,"epoch":1,"train_loss":2.092343506533118,"train_accuracy":0.23312456506610996,"test_loss":2.1049421527330936,"test_accuracy":0.21944444444444444,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.0,"angle":4.640534635760596,"seconds":0.005017199000121764}');
INSERT INTO public.valley_events VALUES (6, '1a1ed94600cffd15', 1794987289.323772, 'epoch', '{"minimum":"sgd","epochs":3,"epoch":2,"train_loss":1.8179902958044711,"train_accuracy":0.32846207376478775,"test_loss":1.8462033882807058,"test_accuracy":0.3138888888888889,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.0,"angle":6.710348014603193,"seconds":0.010449437000033868}');
INSERT INTO public.valley_events VALUES (7, '1a1ed94600cffd15', 1794987289.323787, 'epoch', '{"minimum":"sgd","epochs":3,"epoch":3,"train_loss":1.5593330782004284,"train_accuracy":0.4321503131524008,"test_loss":1.5943852440246007,"test_accuracy":0.3888888888888889,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.0,"angle":8.60909037580805,"seconds":0.01636185100005605}');
INSERT INTO public.valley_events VALUES (9, '1a1ed94600cffd15', 1794987289.371604, 'warning', '{"minimum":"altsdp","message":"G will reach 0.3 (c = 0.02031); initial group norms: smallest 0.5178, median 0.5842. Warning: G stays below the smallest norm, so probably nothing will be pruned; raise c, or set target to about the median, 0.584","harmless":false}');
INSERT INTO public.valley_events VALUES (10, '1a1ed94600cffd15', 1794987289.3716302, 'epoch', '{"minimum":"altsdp","epochs":3,"epoch":1,"train_loss":2.102260568054991,"train_accuracy":0.2268615170494085,"test_loss":2.113916935149813,"test_accuracy":0.21944444444444444,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.05914719973777998,"angle":5.176709352043164,"seconds":0.007801029000120252}');
INSERT INTO public.valley_events VALUES (11, '1a1ed94600cffd15', 1794987289.3716495, 'epoch', '{"minimum":"altsdp","epochs":3,"epoch":2,"train_loss":1.871802874608907,"train_accuracy":0.3187195546276966,"test_loss":1.8952963075083662,"test_accuracy":0.30277777777777776,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.1641353621168888,"angle":9.270423120413149,"seconds":0.011861722000048758}');
INSERT INTO public.valley_events VALUES (12, '1a1ed94600cffd15', 1794987289.3716621, 'epoch', '{"minimum":"altsdp","epochs":3,"epoch":3,"train_loss":1.6996285499674177,"train_accuracy":0.3987473903966597,"test_loss":1.7265102165524941,"test_accuracy":0.35555555555555557,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.3,"angle":15.252262374433986,"seconds":0.016665924000108134}');
INSERT INTO public.valley_events VALUES (14, '1a1ed94600cffd15', 1794987289.508495, 'curve', '{"curve":"valley","share":0.041666666666666664,"epoch":0,"epochs":2,"loss":1.6008092164993286}');
INSERT INTO public.valley_events VALUES (15, '1a1ed94600cffd15', 1794987289.5085208, 'curve', '{"curve":"valley","share":1.0}');
INSERT INTO public.valley_events VALUES (23, '1a1ed94600cffd15', 1794987289.9698486, 'tile', '{"task":"surface:valley:0","seconds":0.089,"plane":"valley","index":0,"level":0,"rows":[0,0,0,0,0,0,0,0,0,1,1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,2,3,3,3,3,3,3,3,3,3,4,4,4,4,4],"columns":[0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4],"values":{"train":{"loss":[1.7325961822123939,1.7590140754262342,1.7859047099599008,1.8133100770267887,1.8412837915864682,1.8698879111431053,1.8991339578280915,1.9290451677404763,1.9596805254085687,1.630554396264456,1.657235819923579,1.6844700296860238,1.7122550179908225,1.7406103417432308,1.7695717547131087,1.799162743503256,1.829356362273285,1.8600693739048904,1.532834742690288,1.5593330782004284,1.586370288517864,1.6139238245748861,1.6420018324501258,1.670595543112568,1.6996285548114543,1.729021221882796,1.7589854434701613,1.4415097801460102,1.4673042052547396,1.4936516914779532,1.5204740567887756,1.5477798628159658,1.57556224136108,1.6040452019187579,1.6331556178551754,1.663068759799357,1.3584709222322926,1.3832067321355555,1.4085272271483777,1.4345205500783937,1.461289573534176],"error":[0.6840640222686152,0.6924147529575505,0.7014613778705637,0.7112038970076549,0.720946416144746,0.7334725121781489,0.7446068197633959,0.7529575504523313,0.7620041753653445,0.6207376478775226,0.627696590118302,0.6353514265831594,0.6457898399443285,0.6555323590814196,0.6659707724425887,0.6715379262352122,0.6812804453723034,0.6910229645093946,0.558803061934586,0.5678496868475992,0.5782881002087683,0.5838552540013918,0.5915100904662491,0.5977731384829506,0.6012526096033403,0.6061238691718859,0.6144745998608212,0.511482254697286,0.523312456506611,0.535142658315936,0.5448851774530271,0.5560194850382741,0.5636743215031316,0.5622825330549757,0.5636743215031316,0.5629784272790536,0.40640222686151706,0.4196242171189979,0.43771746694502434,0.4558107167710508,0.4662491301322199]},"test":{"loss":[1.7625995785944837,1.7874241862068134,1.812641137340229,1.8382705772757542,1.8645004265704914,1.8913892292927839,1.9189445705665535,1.9471337748673525,1.975964896914727,1.6643157973795875,1.6893970068205553,1.7149570719003127,1.7410639827217504,1.7677533143229451,1.7949874711436637,1.822720424313758,1.8510498686779069,1.8798218441317602,1.569482325936413,1.594385244024601,1.619816063012446,1.6458053946247702,1.6722831828950822,1.6991285923520763,1.726510225468389,1.7544417063653472,1.7827367286418927,1.4808008162298987,1.50510987203195,1.5298740688397976,1.555197593382752,1.581075177819917,1.607463575185747,1.6343251559512175,1.6618705399413611,1.6900350738700984,1.3991702253082314,1.4225328348051018,1.4465884056309677,1.4713071097965025,1.4966026858572399],"error":[0.7194444444444444,0.725,0.7277777777777777,0.7333333333333333,0.7361111111111112,0.7472222222222222,0.7472222222222222,0.7611111111111111,0.7694444444444445,0.6527777777777778,0.6666666666666666,0.6722222222222223,0.6833333333333333,0.6888888888888889,0.6916666666666667,0.7027777777777777,0.7,0.7027777777777777,0.6,0.6111111111111112,0.6138888888888889,0.6194444444444445,0.625,0.6361111111111111,0.6444444444444445,0.6472222222222223,0.6527777777777778,0.5222222222222223,0.5333333333333333,0.5416666666666666,0.5583333333333333,0.5611111111111111,0.575,0.5861111111111111,0.5833333333333334,0.5833333333333334,0.4166666666666667,0.4305555555555556,0.4583333333333333,0.4722222222222222,0.48333333333333334]}}}');
INSERT INTO public.valley_events VALUES (24, '1a1ed94600cffd15', 1794987290.0390968, 'tile', '{"task":"surface:valley:1","seconds":0.042,"plane":"valley","index":1,"level":0,"rows":[4,4,4,4,5,5,5,5,5,5,5,5,5,6,6,6,6,6,6,6,6,6,7,7,7,7,7,7,7,7,7,8,8,8,8,8,8,8,8,8],"columns":[5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8],"values":{"train":{"loss":[1.4888096926580399,1.5171028842335765,1.5462896417030805,1.5764127549280469,1.285459442231972,1.3089766928962738,1.3334417430660621,1.358798826099238,1.3850436917695454,1.412205512264583,1.4403905673211912,1.4696258716123045,1.4997159071827302,1.223988214219855,1.2463401801023561,1.269750870576177,1.2941999154258854,1.31980942162366,1.346581779162918,1.374528724985948,1.4034794219396445,1.4331260827456063,1.1752712847435653,1.1961075914056336,1.218197557255586,1.2416327103958076,1.266368601591129,1.2925099430676286,1.3198144490911725,1.3482601218931285,1.3772863624365768,1.1395479278184992,1.158628528005257,1.1792690292842771,1.201388494291302,1.2250496261322974,1.2501702046724663,1.2767153488490353,1.3044186647371818,1.3335472304003295],"error":[0.4836464857341684,0.500347947112039,0.5093945720250522,0.5121781489213639,0.3500347947112039,0.36116910229645094,0.3709116214335421,0.38900487125956856,0.40431454418928325,0.42379958246346555,0.4342379958246347,0.4558107167710508,0.4815588030619346,0.3312456506610995,0.336812804453723,0.3500347947112039,0.3618649965205289,0.3736951983298539,0.3924843423799583,0.4140570633263744,0.4349338900487126,0.4592901878914405,0.3173277661795407,0.32498260264439804,0.3354210160055672,0.3465553235908142,0.35977731384829503,0.3813500347947112,0.40083507306889354,0.41684064022268613,0.44676409185803756,0.325678496868476,0.336812804453723,0.336812804453723,0.34933890048712596,0.3653444676409186,0.3778705636743215,0.39944328462073764,0.42032011134307584,0.4439805149617258]},"test":{"loss":[1.5227404181648276,1.5494965464979829,1.5769778371200491,1.6053776398986372,1.3279613371056427,1.350309046488411,1.3734738285581303,1.3975758616871636,1.4225110430089976,1.4481337629630688,1.4746712128930817,1.5022664648737416,1.530968380400595,1.2681232753643952,1.2894101808682645,1.3117294491667357,1.3349336109373444,1.3589919633223697,1.3842624142156401,1.4107159067310595,1.4383535888751402,1.466739404817534,1.2208269541904184,1.2406879424250787,1.2615440710763735,1.283583507177225,1.3070223417464477,1.3317687280266615,1.3578562535147944,1.3850550452477592,1.412617635172857,1.186107541203983,1.204069381224007,1.223565672845667,1.2445666382305138,1.2670371439724204,1.2909819527196225,1.316353366534533,1.3426945168074949,1.3701403193617148],"error":[0.5,0.5166666666666667,0.5333333333333333,0.5444444444444444,0.375,0.39166666666666666,0.4166666666666667,0.42777777777777776,0.4388888888888889,0.44722222222222224,0.4583333333333333,0.48055555555555557,0.49722222222222223,0.3527777777777778,0.35833333333333334,0.36944444444444446,0.36944444444444446,0.3972222222222222,0.40555555555555556,0.4305555555555556,0.4666666666666667,0.4777777777777778,0.3277777777777778,0.3416666666666667,0.3472222222222222,0.36666666666666664,0.3861111111111111,0.39166666666666666,0.4111111111111111,0.44722222222222224,0.4666666666666667,0.33611111111111114,0.34444444444444444,0.3472222222222222,0.3638888888888889,0.38055555555555554,0.4,0.41388888888888886,0.44166666666666665,0.4638888888888889]}}}');
INSERT INTO public.valley_events VALUES (26, '1a1ed94600cffd15', 1794987290.8786085, 'verdict', '{"kind":"one basin","finding":"sgd and altsdp lie in one basin: on the straight line between them the train loss does not rise above its higher end; the tolerance is 0.05 nats.","sentence":"sgd and altsdp lie in one basin: on the straight line between them the train loss does not rise above its higher end; the tolerance is 0.05 nats. No barrier, but not constant: along the line the loss rises steadily from 1.56 at sgd to 1.70 at altsdp, more than the tolerance: one slope rather than a level valley. The fitted curve ''valley'' does not rise above its higher end; it is not needed for this finding, since even unrelated minima are usually joined by one. No control was measured: a minimum from another initialisation would show whether a barrier is to be expected at all between basins of this network. Test error along the line: 61.1 to 64.4 %.","tolerance":0.05,"split":"train","between":["sgd","altsdp"],"line":{"barrier":0.0,"low":0.0,"high":0.0},"curve":{"name":"valley","barrier":0.0,"low":0.0,"high":0.0},"control":null,"sharpness":{"sgd":{"radius":0.1,"rise":0.005090959593135635,"highest":0.023493640750400724,"loss":1.5593330782004284,"directions":10,"seed":0,"split":"train"},"altsdp":{"radius":0.1,"rise":0.003105390035701505,"highest":0.01868051757210809,"loss":1.699628549967418,"directions":10,"seed":0,"split":"train"}},"test_error":{"line":{"min":0.6111111111111112,"max":0.6444444444444445,"mean":0.6255555555555555},"curve":{"min":0.43333333333333335,"max":0.6444444444444445,"mean":0.5383333333333333}},"level":0.95,"bootstrap":100,"notes":[]}');
INSERT INTO public.valley_events VALUES (27, '1a1ed94600cffd15', 1794987290.878689, 'state', '{"state":"done","run":1,"error":null}');
INSERT INTO public.valley_events VALUES (28, '1a1ed94737576bec', 1794987291.5105093, 'state', '{"state":"queued","run":1}');
INSERT INTO public.valley_events VALUES (29, '1a1ed94737576bec', 1794987291.5192327, 'state', '{"state":"cancelled","run":1,"error":null}');
INSERT INTO public.valley_events VALUES (30, '1a1ed947383883f0', 1794987291.524244, 'state', '{"state":"queued","run":1}');
INSERT INTO public.valley_events VALUES (31, '1a1ed947383883f0', 1794987291.5541077, 'progress', '{"progress":0.0,"stage":"minima","seconds_left":null}');


--
-- Data for Name: valley_experiments; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.valley_experiments VALUES (1, '1a1ed94600cffd15', 'done', 'done', 'done', '{"name": "done", "model": {"name": "mlp", "hidden": [8]}, "training": {"epochs": 3, "batch_size": 128}, "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}}, "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 2}}, "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9}}, "points": 5, "verdict": {"resamples": 100}}', 'ec8130918de5d4dbd91f21b5804efbbc30eddc163a351ec8f5a7dd784d895208', NULL, 100, 1, 1794987286.5410368, 1794987287.362248, 1794987290.8774798, 1, NULL, NULL, 'one basin', 'sgd and altsdp lie in one basin: on the straight line between them the train loss does not rise above its higher end; the tolerance is 0.05 nats. No barrier, but not constant: along the line the loss rises steadily from 1.56 at sgd to 1.70 at altsdp, more than the tolerance: one slope rather than a level valley. The fitted curve ''valley'' does not rise above its higher end; it is not needed for this finding, since even unrelated minima are usually joined by one. No control was measured: a minimum from another initialisation would show whether a barrier is to be expected at all between basins of this network. Test error along the line: 61.1 to 64.4 %.', false, false, NULL);
INSERT INTO public.valley_experiments VALUES (2, '1a1ed94737576bec', 'cancelled', 'cancelled', 'cancelled', '{"name": "cancelled", "model": {"name": "mlp", "hidden": [8]}, "training": {"epochs": 3, "batch_size": 128}, "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}}, "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 2}}, "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9}}, "points": 5, "verdict": {"resamples": 100}}', 'ec477f41aa96e8748d57d5bdc8dc9f2cb7e31d3b29e32291c0d1fdba534abe6b', NULL, 100, 1, 1794987291.509775, NULL, 1794987291.5184245, 0, NULL, NULL, NULL, NULL, false, false, NULL);
INSERT INTO public.valley_experiments VALUES (3, '1a1ed947383883f0', 'waiting', 'queued', 'minima', '{"name": "waiting", "model": {"name": "mlp", "hidden": [8]}, "training": {"epochs": 3, "batch_size": 128}, "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}}, "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 2}}, "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9}}, "points": 5, "verdict": {"resamples": 100}}', '05dea1455f01a9e5978d20818b9a5539e09a1af4247bd589ac949c3fd1e51bb1', NULL, 100, 1, 1794987291.5236928, NULL, NULL, 0, NULL, NULL, NULL, NULL, false, false, 'api-23899-4e3a23d3cdca');


--
-- Data for Name: valley_hands; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.valley_hands VALUES ('1a1ed94600cffd15', 'vm, cpu', 11, 2.300630153999691);


--
-- Data for Name: valley_identity; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.valley_identity VALUES ('fe39bc62190fb5ca7be68e5e58d87ae0', true);


--
-- Data for Name: valley_processes; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: valley_tasks; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'fit:valley', 'fit', 'kept', 1000000121, 1, 1, 0, 1, 0, NULL, 1794987289.410658, 1794987289.4698527, 0.03284499199980928, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'line:sgd-altsdp', 'line', 'kept', 1000000151, 1, 1, 0, 1, 0, NULL, 1794987289.41248, 1794987289.5229821, 0.013392072999977245, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'curve:valley', 'curve', 'kept', 1000000151, 1, 1, 0, 1, 0, NULL, 1794987289.618891, 1794987289.746614, 0.016066880999915156, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'frame:valley', 'frame', 'kept', 1000000131, 1, 1, 0, 1, 0, NULL, 1794987289.6169188, 1794987289.721497, 0.0022732790000645764, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'sharpness:altsdp', 'sharpness', 'kept', 1000000152, 1, 1, 0, 1, 0, NULL, 1794987289.414888, 1794987289.629233, 0.06748545200002809, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'sharpness:sgd', 'sharpness', 'kept', 1000000152, 1, 1, 0, 1, 0, NULL, 1794987289.413735, 1794987289.554179, 0.051987498000016785, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'surface:valley:0', 'surface', 'kept', 1000000141, 1, 1, 0, 1, 0, NULL, 1794987289.8136878, 1794987289.8734741, 0.0885739289999492, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'surface:valley:1', 'surface', 'kept', 1000000141, 1, 1, 0, 1, 0, NULL, 1794987289.8153343, 1794987289.9945476, 0.041626532999998744, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'train:altsdp', 'train', 'kept', 1000000111, 1, 1, 0, 1, 0, NULL, 1794987286.612558, 1794987289.3342323, 0.03401135100011743, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'train:sgd', 'train', 'kept', 1000000111, 1, 1, 0, 1, 0, NULL, 1794987286.6086998, 1794987287.3603547, 1.9486579949998486, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed94600cffd15', 'verdict:experiment', 'verdict', 'kept', 1000000161, 1, 1, 0, 1, 0, NULL, 1794987289.8165894, 1794987290.0546587, 0.003710170999966067, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed947383883f0', 'train:sgd', 'train', 'queued', 1000000311, 1, 0, 0, 0, 0, NULL, 1794987291.544175, NULL, NULL, NULL, NULL);
INSERT INTO public.valley_tasks VALUES ('1a1ed947383883f0', 'train:altsdp', 'train', 'queued', 1000000311, 1, 0, 0, 0, 0, NULL, 1794987291.5469067, NULL, NULL, NULL, NULL);


--
-- Data for Name: valley_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.valley_version VALUES (1, 1);
INSERT INTO public.valley_version VALUES (2, 1);
INSERT INTO public.valley_version VALUES (3, 1);
INSERT INTO public.valley_version VALUES (4, 1);


--
-- Name: valley_events_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.valley_events_id_seq', 31, true);


--
-- Name: valley_experiments_number_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.valley_experiments_number_seq', 3, true);


--
-- Name: application_versions application_versions_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.application_versions
    ADD CONSTRAINT application_versions_pkey PRIMARY KEY (version_id);


--
-- Name: application_versions application_versions_version_name_key; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.application_versions
    ADD CONSTRAINT application_versions_version_name_key UNIQUE (version_name);


--
-- Name: dbos_migrations dbos_migrations_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.dbos_migrations
    ADD CONSTRAINT dbos_migrations_pkey PRIMARY KEY (version);


--
-- Name: event_dispatch_kv event_dispatch_kv_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.event_dispatch_kv
    ADD CONSTRAINT event_dispatch_kv_pkey PRIMARY KEY (service_name, workflow_fn_name, key);


--
-- Name: notifications notifications_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.notifications
    ADD CONSTRAINT notifications_pkey PRIMARY KEY (message_uuid);


--
-- Name: operation_outputs operation_outputs_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.operation_outputs
    ADD CONSTRAINT operation_outputs_pkey PRIMARY KEY (workflow_uuid, function_id);


--
-- Name: queues queues_name_key; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.queues
    ADD CONSTRAINT queues_name_key UNIQUE (name);


--
-- Name: queues queues_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (queue_id);


--
-- Name: streams streams_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.streams
    ADD CONSTRAINT streams_pkey PRIMARY KEY (workflow_uuid, key, "offset");


--
-- Name: workflow_events_history workflow_events_history_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.workflow_events_history
    ADD CONSTRAINT workflow_events_history_pkey PRIMARY KEY (workflow_uuid, function_id, key);


--
-- Name: workflow_events workflow_events_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.workflow_events
    ADD CONSTRAINT workflow_events_pkey PRIMARY KEY (workflow_uuid, key);


--
-- Name: workflow_input workflow_input_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.workflow_input
    ADD CONSTRAINT workflow_input_pkey PRIMARY KEY (workflow_uuid);


--
-- Name: workflow_output workflow_output_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.workflow_output
    ADD CONSTRAINT workflow_output_pkey PRIMARY KEY (workflow_uuid);


--
-- Name: workflow_schedules workflow_schedules_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.workflow_schedules
    ADD CONSTRAINT workflow_schedules_pkey PRIMARY KEY (schedule_id);


--
-- Name: workflow_schedules workflow_schedules_schedule_name_key; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.workflow_schedules
    ADD CONSTRAINT workflow_schedules_schedule_name_key UNIQUE (schedule_name);


--
-- Name: workflow_status workflow_status_pkey; Type: CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.workflow_status
    ADD CONSTRAINT workflow_status_pkey PRIMARY KEY (workflow_uuid);


--
-- Name: valley_checkpoints valley_checkpoints_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_checkpoints
    ADD CONSTRAINT valley_checkpoints_pkey PRIMARY KEY (id);


--
-- Name: valley_events valley_events_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_events
    ADD CONSTRAINT valley_events_pkey PRIMARY KEY (id);


--
-- Name: valley_experiments valley_experiments_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_experiments
    ADD CONSTRAINT valley_experiments_id_key UNIQUE (id);


--
-- Name: valley_experiments valley_experiments_key_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_experiments
    ADD CONSTRAINT valley_experiments_key_key UNIQUE (key);


--
-- Name: valley_experiments valley_experiments_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_experiments
    ADD CONSTRAINT valley_experiments_pkey PRIMARY KEY (number);


--
-- Name: valley_hands valley_hands_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_hands
    ADD CONSTRAINT valley_hands_pkey PRIMARY KEY (experiment, worker);


--
-- Name: valley_identity valley_identity_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_identity
    ADD CONSTRAINT valley_identity_pkey PRIMARY KEY (id);


--
-- Name: valley_processes valley_processes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_processes
    ADD CONSTRAINT valley_processes_pkey PRIMARY KEY (id);


--
-- Name: valley_tasks valley_tasks_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.valley_tasks
    ADD CONSTRAINT valley_tasks_pkey PRIMARY KEY (experiment, task);


--
-- Name: idx_operation_outputs_completed_at_function_name_v2; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_operation_outputs_completed_at_function_name_v2 ON dbos.operation_outputs USING btree (completed_at_epoch_ms, function_name) INCLUDE (application_name);


--
-- Name: idx_operation_outputs_retention; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_operation_outputs_retention ON dbos.operation_outputs USING btree (retention_timestamp);


--
-- Name: idx_workflow_input_retention; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_input_retention ON dbos.workflow_input USING btree (retention_timestamp);


--
-- Name: idx_workflow_output_retention; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_output_retention ON dbos.workflow_output USING btree (retention_timestamp);


--
-- Name: idx_workflow_status_attributes; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_attributes ON dbos.workflow_status USING gin (attributes) WHERE (attributes IS NOT NULL);


--
-- Name: idx_workflow_status_completed_at; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_completed_at ON dbos.workflow_status USING btree (completed_at) WHERE (completed_at IS NOT NULL);


--
-- Name: idx_workflow_status_deadline; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_deadline ON dbos.workflow_status USING btree (workflow_deadline_epoch_ms) WHERE ((status = ANY (ARRAY['ENQUEUED'::text, 'PENDING'::text, 'DELAYED'::text])) AND (workflow_deadline_epoch_ms IS NOT NULL));


--
-- Name: idx_workflow_status_delayed; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_delayed ON dbos.workflow_status USING btree (delay_until_epoch_ms) WHERE (status = 'DELAYED'::text);


--
-- Name: idx_workflow_status_failed; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_failed ON dbos.workflow_status USING btree (status, created_at) WHERE (status = ANY (ARRAY['ERROR'::text, 'CANCELLED'::text, 'MAX_RECOVERY_ATTEMPTS_EXCEEDED'::text]));


--
-- Name: idx_workflow_status_forked_from; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_forked_from ON dbos.workflow_status USING btree (forked_from) WHERE (forked_from IS NOT NULL);


--
-- Name: idx_workflow_status_in_flight_v2; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_in_flight_v2 ON dbos.workflow_status USING btree (queue_name, status, priority, created_at) INCLUDE (application_name) WHERE (status = ANY (ARRAY['ENQUEUED'::text, 'PENDING'::text]));


--
-- Name: idx_workflow_status_parent_workflow_id; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_parent_workflow_id ON dbos.workflow_status USING btree (parent_workflow_id) WHERE (parent_workflow_id IS NOT NULL);


--
-- Name: idx_workflow_status_partition_dequeue_v3; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_partition_dequeue_v3 ON dbos.workflow_status USING btree (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid) INCLUDE (application_name) WHERE ((status = ANY (ARRAY['ENQUEUED'::text, 'PENDING'::text])) AND (queue_partition_key IS NOT NULL));


--
-- Name: idx_workflow_status_pending; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_pending ON dbos.workflow_status USING btree (created_at) WHERE (status = 'PENDING'::text);


--
-- Name: idx_workflow_status_rate_limited; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_rate_limited ON dbos.workflow_status USING btree (queue_name, started_at_epoch_ms) WHERE (rate_limited = true);


--
-- Name: idx_workflow_status_schedule_name; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_schedule_name ON dbos.workflow_status USING btree (schedule_name) WHERE (schedule_name IS NOT NULL);


--
-- Name: idx_workflow_status_started_at; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_status_started_at ON dbos.workflow_status USING btree (started_at_epoch_ms) WHERE (started_at_epoch_ms IS NOT NULL);


--
-- Name: idx_workflow_topic; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX idx_workflow_topic ON dbos.notifications USING btree (destination_uuid, topic);


--
-- Name: uq_application_versions_owner_version; Type: INDEX; Schema: dbos; Owner: -
--

CREATE UNIQUE INDEX uq_application_versions_owner_version ON dbos.application_versions USING btree (application_name, version_name) WHERE (application_name IS NOT NULL);


--
-- Name: uq_application_versions_unclaimed_version; Type: INDEX; Schema: dbos; Owner: -
--

CREATE UNIQUE INDEX uq_application_versions_unclaimed_version ON dbos.application_versions USING btree (version_name) WHERE (application_name IS NULL);


--
-- Name: uq_workflow_status_dedup_id; Type: INDEX; Schema: dbos; Owner: -
--

CREATE UNIQUE INDEX uq_workflow_status_dedup_id ON dbos.workflow_status USING btree (queue_name, deduplication_id) WHERE (deduplication_id IS NOT NULL);


--
-- Name: workflow_status_created_at_index; Type: INDEX; Schema: dbos; Owner: -
--

CREATE INDEX workflow_status_created_at_index ON dbos.workflow_status USING btree (created_at);


--
-- Name: valley_events_experiment; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX valley_events_experiment ON public.valley_events USING btree (experiment, id);


--
-- Name: valley_experiments_number; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX valley_experiments_number ON public.valley_experiments USING btree (deleted, number);


--
-- Name: valley_experiments_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX valley_experiments_state ON public.valley_experiments USING btree (deleted, state, number);


--
-- Name: valley_tasks_experiment; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX valley_tasks_experiment ON public.valley_tasks USING btree (experiment, state);


--
-- Name: valley_tasks_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX valley_tasks_state ON public.valley_tasks USING btree (state, priority);


--
-- Name: notifications notifications_destination_uuid_fkey; Type: FK CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.notifications
    ADD CONSTRAINT notifications_destination_uuid_fkey FOREIGN KEY (destination_uuid) REFERENCES dbos.workflow_status(workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE;


--
-- Name: streams streams_workflow_uuid_fkey; Type: FK CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.streams
    ADD CONSTRAINT streams_workflow_uuid_fkey FOREIGN KEY (workflow_uuid) REFERENCES dbos.workflow_status(workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE;


--
-- Name: workflow_events_history workflow_events_history_workflow_uuid_fkey; Type: FK CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.workflow_events_history
    ADD CONSTRAINT workflow_events_history_workflow_uuid_fkey FOREIGN KEY (workflow_uuid) REFERENCES dbos.workflow_status(workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE;


--
-- Name: workflow_events workflow_events_workflow_uuid_fkey; Type: FK CONSTRAINT; Schema: dbos; Owner: -
--

ALTER TABLE ONLY dbos.workflow_events
    ADD CONSTRAINT workflow_events_workflow_uuid_fkey FOREIGN KEY (workflow_uuid) REFERENCES dbos.workflow_status(workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--

\unrestrict umUz77CjOTSgDSpFoXwdHywWI5roq9lOw6XXLEP0B7reZwUmFa3DghJWbHgszZf

