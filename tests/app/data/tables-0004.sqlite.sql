BEGIN TRANSACTION;
CREATE TABLE application_versions (
    version_id TEXT NOT NULL PRIMARY KEY,
    version_name TEXT NOT NULL UNIQUE,
    version_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    created_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
, "application_name" TEXT DEFAULT NULL);
INSERT INTO "application_versions" VALUES('80171759-bff7-4020-bb74-4ead9d0fd2db','jobs-1',1794987277000,1794987277000,'valleyscope');
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
INSERT INTO "queues" VALUES('A489185AC6D93078F85AFACECBD3271B','control',NULL,8,NULL,NULL,1,0,1.0,1794987277000,1794987277757,'valleyscope',NULL,NULL,NULL,NULL);
INSERT INTO "queues" VALUES('C3CC988BCD295B0C9C26F81B3DF116DD','gpu',NULL,1,NULL,NULL,1,0,0.08,1794987277000,1794987282610,'valleyscope',NULL,NULL,NULL,NULL);
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
CREATE TABLE valley_events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	experiment VARCHAR(32) NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR(12) NOT NULL, 
	text TEXT NOT NULL
);
INSERT INTO "valley_events" VALUES(1,'1a1ed943dd514c5c',1.79498727778308320049e+09,'state','{"state":"queued","run":1}');
INSERT INTO "valley_events" VALUES(3,'1a1ed943dd514c5c',1.79498727842313337329e+09,'state','{"state":"running","run":1}');
INSERT INTO "valley_events" VALUES(6,'1a1ed943dd514c5c',1.79498728046846365929e+09,'epoch','{"minimum":"sgd","epochs":3,"epoch":1,"train_loss":2.092343506533118,"train_accuracy":0.23312456506610996,"test_loss":2.1049421527330936,"test_accuracy":0.21944444444444444,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.0,"angle":4.640534635760596,"seconds":0.005207914000038727}');
INSERT INTO "valley_events" VALUES(7,'1a1ed943dd514c5c',1.79498728046852278712e+09,'epoch','{"minimum":"sgd","epochs":3,"epoch":2,"train_loss":1.8179902958044711,"train_accuracy":0.32846207376478775,"test_loss":1.8462033882807058,"test_accuracy":0.3138888888888889,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.0,"angle":6.710348014603193,"seconds":0.015712733999862394}');
INSERT INTO "valley_events" VALUES(8,'1a1ed943dd514c5c',1.79498728046853780744e+09,'epoch','{"minimum":"sgd","epochs":3,"epoch":3,"train_loss":1.5593330782004284,"train_accuracy":0.4321503131524008,"test_loss":1.5943852440246007,"test_accuracy":0.3888888888888889,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.0,"angle":8.60909037580805,"seconds":0.02763770999990811}');
INSERT INTO "valley_events" VALUES(10,'1a1ed943dd514c5c',1.79498728052897143364e+09,'warning','{"minimum":"altsdp","message":"G will reach 0.3 (c = 0.02031); initial group norms: smallest 0.5178, median 0.5842. Warning: G stays below the smallest norm, so probably nothing will be pruned; raise c, or set target to about the median, 0.584","harmless":false}');
INSERT INTO "valley_events" VALUES(11,'1a1ed943dd514c5c',1.79498728052899265287e+09,'epoch','{"minimum":"altsdp","epochs":3,"epoch":1,"train_loss":2.102260568054991,"train_accuracy":0.2268615170494085,"test_loss":2.113916935149813,"test_accuracy":0.21944444444444444,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.05914719973777998,"angle":5.176709352043164,"seconds":0.0036797249999835913}');
INSERT INTO "valley_events" VALUES(12,'1a1ed943dd514c5c',1.79498728052901244164e+09,'epoch','{"minimum":"altsdp","epochs":3,"epoch":2,"train_loss":1.871802874608907,"train_accuracy":0.3187195546276966,"test_loss":1.8952963075083662,"test_accuracy":0.30277777777777776,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.1641353621168888,"angle":9.270423120413149,"seconds":0.010262808999868867}');
INSERT INTO "valley_events" VALUES(13,'1a1ed943dd514c5c',1.7949872805290250778e+09,'epoch','{"minimum":"altsdp","epochs":3,"epoch":3,"train_loss":1.6996285499674177,"train_accuracy":0.3987473903966597,"test_loss":1.7265102165524941,"test_accuracy":0.35555555555555557,"sparsity":0.0,"zero_groups":0.0,"learning_rate":0.1,"threshold":0.3,"angle":15.252262374433986,"seconds":0.017421861000002536}');
INSERT INTO "valley_events" VALUES(16,'1a1ed943dd514c5c',1.79498728068695807455e+09,'curve','{"curve":"valley","share":0.041666666666666664,"epoch":0,"epochs":2,"loss":1.6008092164993286}');
INSERT INTO "valley_events" VALUES(17,'1a1ed943dd514c5c',1.79498728068697762489e+09,'curve','{"curve":"valley","share":1.0}');
INSERT INTO "valley_events" VALUES(23,'1a1ed943dd514c5c',1.79498728097526240353e+09,'tile','{"task":"surface:valley:0","seconds":0.026,"plane":"valley","index":0,"level":0,"rows":[0,0,0,0,0,0,0,0,0,1,1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,2,3,3,3,3,3,3,3,3,3,4,4,4,4,4],"columns":[0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4],"values":{"train":{"loss":[1.7325961822123939,1.7590140754262342,1.7859047099599008,1.8133100770267887,1.8412837915864682,1.8698879111431053,1.8991339578280915,1.9290451677404763,1.9596805254085687,1.630554396264456,1.657235819923579,1.6844700296860238,1.7122550179908225,1.7406103417432308,1.7695717547131087,1.799162743503256,1.829356362273285,1.8600693739048904,1.532834742690288,1.5593330782004284,1.586370288517864,1.6139238245748861,1.6420018324501258,1.670595543112568,1.6996285548114543,1.729021221882796,1.7589854434701613,1.4415097801460102,1.4673042052547396,1.4936516914779532,1.5204740567887756,1.5477798628159658,1.57556224136108,1.6040452019187579,1.6331556178551754,1.663068759799357,1.3584709222322926,1.3832067321355555,1.4085272271483777,1.4345205500783937,1.461289573534176],"error":[0.6840640222686152,0.6924147529575505,0.7014613778705637,0.7112038970076549,0.720946416144746,0.7334725121781489,0.7446068197633959,0.7529575504523313,0.7620041753653445,0.6207376478775226,0.627696590118302,0.6353514265831594,0.6457898399443285,0.6555323590814196,0.6659707724425887,0.6715379262352122,0.6812804453723034,0.6910229645093946,0.558803061934586,0.5678496868475992,0.5782881002087683,0.5838552540013918,0.5915100904662491,0.5977731384829506,0.6012526096033403,0.6061238691718859,0.6144745998608212,0.511482254697286,0.523312456506611,0.535142658315936,0.5448851774530271,0.5560194850382741,0.5636743215031316,0.5622825330549757,0.5636743215031316,0.5629784272790536,0.40640222686151706,0.4196242171189979,0.43771746694502434,0.4558107167710508,0.4662491301322199]},"test":{"loss":[1.7625995785944837,1.7874241862068134,1.812641137340229,1.8382705772757542,1.8645004265704914,1.8913892292927839,1.9189445705665535,1.9471337748673525,1.975964896914727,1.6643157973795875,1.6893970068205553,1.7149570719003127,1.7410639827217504,1.7677533143229451,1.7949874711436637,1.822720424313758,1.8510498686779069,1.8798218441317602,1.569482325936413,1.594385244024601,1.619816063012446,1.6458053946247702,1.6722831828950822,1.6991285923520763,1.726510225468389,1.7544417063653472,1.7827367286418927,1.4808008162298987,1.50510987203195,1.5298740688397976,1.555197593382752,1.581075177819917,1.607463575185747,1.6343251559512175,1.6618705399413611,1.6900350738700984,1.3991702253082314,1.4225328348051018,1.4465884056309677,1.4713071097965025,1.4966026858572399],"error":[0.7194444444444444,0.725,0.7277777777777777,0.7333333333333333,0.7361111111111112,0.7472222222222222,0.7472222222222222,0.7611111111111111,0.7694444444444445,0.6527777777777778,0.6666666666666666,0.6722222222222223,0.6833333333333333,0.6888888888888889,0.6916666666666667,0.7027777777777777,0.7,0.7027777777777777,0.6,0.6111111111111112,0.6138888888888889,0.6194444444444445,0.625,0.6361111111111111,0.6444444444444445,0.6472222222222223,0.6527777777777778,0.5222222222222223,0.5333333333333333,0.5416666666666666,0.5583333333333333,0.5611111111111111,0.575,0.5861111111111111,0.5833333333333334,0.5833333333333334,0.4166666666666667,0.4305555555555556,0.4583333333333333,0.4722222222222222,0.48333333333333334]}}}');
INSERT INTO "valley_events" VALUES(24,'1a1ed943dd514c5c',1.79498728101778459546e+09,'tile','{"task":"surface:valley:1","seconds":0.034,"plane":"valley","index":1,"level":0,"rows":[4,4,4,4,5,5,5,5,5,5,5,5,5,6,6,6,6,6,6,6,6,6,7,7,7,7,7,7,7,7,7,8,8,8,8,8,8,8,8,8],"columns":[5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8],"values":{"train":{"loss":[1.4888096926580399,1.5171028842335765,1.5462896417030805,1.5764127549280469,1.285459442231972,1.3089766928962738,1.3334417430660621,1.358798826099238,1.3850436917695454,1.412205512264583,1.4403905673211912,1.4696258716123045,1.4997159071827302,1.223988214219855,1.2463401801023561,1.269750870576177,1.2941999154258854,1.31980942162366,1.346581779162918,1.374528724985948,1.4034794219396445,1.4331260827456063,1.1752712847435653,1.1961075914056336,1.218197557255586,1.2416327103958076,1.266368601591129,1.2925099430676286,1.3198144490911725,1.3482601218931285,1.3772863624365768,1.1395479278184992,1.158628528005257,1.1792690292842771,1.201388494291302,1.2250496261322974,1.2501702046724663,1.2767153488490353,1.3044186647371818,1.3335472304003295],"error":[0.4836464857341684,0.500347947112039,0.5093945720250522,0.5121781489213639,0.3500347947112039,0.36116910229645094,0.3709116214335421,0.38900487125956856,0.40431454418928325,0.42379958246346555,0.4342379958246347,0.4558107167710508,0.4815588030619346,0.3312456506610995,0.336812804453723,0.3500347947112039,0.3618649965205289,0.3736951983298539,0.3924843423799583,0.4140570633263744,0.4349338900487126,0.4592901878914405,0.3173277661795407,0.32498260264439804,0.3354210160055672,0.3465553235908142,0.35977731384829503,0.3813500347947112,0.40083507306889354,0.41684064022268613,0.44676409185803756,0.325678496868476,0.336812804453723,0.336812804453723,0.34933890048712596,0.3653444676409186,0.3778705636743215,0.39944328462073764,0.42032011134307584,0.4439805149617258]},"test":{"loss":[1.5227404181648276,1.5494965464979829,1.5769778371200491,1.6053776398986372,1.3279613371056427,1.350309046488411,1.3734738285581303,1.3975758616871636,1.4225110430089976,1.4481337629630688,1.4746712128930817,1.5022664648737416,1.530968380400595,1.2681232753643952,1.2894101808682645,1.3117294491667357,1.3349336109373444,1.3589919633223697,1.3842624142156401,1.4107159067310595,1.4383535888751402,1.466739404817534,1.2208269541904184,1.2406879424250787,1.2615440710763735,1.283583507177225,1.3070223417464477,1.3317687280266615,1.3578562535147944,1.3850550452477592,1.412617635172857,1.186107541203983,1.204069381224007,1.223565672845667,1.2445666382305138,1.2670371439724204,1.2909819527196225,1.316353366534533,1.3426945168074949,1.3701403193617148],"error":[0.5,0.5166666666666667,0.5333333333333333,0.5444444444444444,0.375,0.39166666666666666,0.4166666666666667,0.42777777777777776,0.4388888888888889,0.44722222222222224,0.4583333333333333,0.48055555555555557,0.49722222222222223,0.3527777777777778,0.35833333333333334,0.36944444444444446,0.36944444444444446,0.3972222222222222,0.40555555555555556,0.4305555555555556,0.4666666666666667,0.4777777777777778,0.3277777777777778,0.3416666666666667,0.3472222222222222,0.36666666666666664,0.3861111111111111,0.39166666666666666,0.4111111111111111,0.44722222222222224,0.4666666666666667,0.33611111111111114,0.34444444444444444,0.3472222222222222,0.3638888888888889,0.38055555555555554,0.4,0.41388888888888886,0.44166666666666665,0.4638888888888889]}}}');
INSERT INTO "valley_events" VALUES(26,'1a1ed943dd514c5c',1.79498728181407332421e+09,'verdict','{"kind":"one basin","finding":"sgd and altsdp lie in one basin: on the straight line between them the train loss does not rise above its higher end; the tolerance is 0.05 nats.","sentence":"sgd and altsdp lie in one basin: on the straight line between them the train loss does not rise above its higher end; the tolerance is 0.05 nats. No barrier, but not constant: along the line the loss rises steadily from 1.56 at sgd to 1.70 at altsdp, more than the tolerance: one slope rather than a level valley. The fitted curve ''valley'' does not rise above its higher end; it is not needed for this finding, since even unrelated minima are usually joined by one. No control was measured: a minimum from another initialisation would show whether a barrier is to be expected at all between basins of this network. Test error along the line: 61.1 to 64.4 %.","tolerance":0.05,"split":"train","between":["sgd","altsdp"],"line":{"barrier":0.0,"low":0.0,"high":0.0},"curve":{"name":"valley","barrier":0.0,"low":0.0,"high":0.0},"control":null,"sharpness":{"sgd":{"radius":0.1,"rise":0.005090959593135635,"highest":0.023493640750400724,"loss":1.5593330782004284,"directions":10,"seed":0,"split":"train"},"altsdp":{"radius":0.1,"rise":0.003105390035701505,"highest":0.01868051757210809,"loss":1.699628549967418,"directions":10,"seed":0,"split":"train"}},"test_error":{"line":{"min":0.6111111111111112,"max":0.6444444444444445,"mean":0.6255555555555555},"curve":{"min":0.43333333333333335,"max":0.6444444444444445,"mean":0.5383333333333333}},"level":0.95,"bootstrap":100,"notes":[]}');
INSERT INTO "valley_events" VALUES(27,'1a1ed943dd514c5c',1.79498728181415867803e+09,'state','{"state":"done","run":1,"error":null}');
INSERT INTO "valley_events" VALUES(28,'1a1ed94506f07a52',1.79498728254447150235e+09,'state','{"state":"queued","run":1}');
INSERT INTO "valley_events" VALUES(29,'1a1ed94506f07a52',1.79498728255438613895e+09,'state','{"state":"queued","run":1,"cancelling":true}');
INSERT INTO "valley_events" VALUES(30,'1a1ed94506f07a52',1.79498728256195902823e+09,'state','{"state":"cancelled","run":1,"error":null}');
INSERT INTO "valley_events" VALUES(31,'1a1ed9450b0ec8bc',1.79498728260882401469e+09,'state','{"state":"queued","run":1}');
INSERT INTO "valley_events" VALUES(32,'1a1ed9450b0ec8bc',1.79498728261985850337e+09,'progress','{"progress":0.0,"stage":"minima","seconds_left":null}');
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
	conductor VARCHAR(64), 
	UNIQUE (id), 
	UNIQUE ("key")
);
INSERT INTO "valley_experiments" VALUES(1,'1a1ed943dd514c5c','done','done','done','{"name": "done", "model": {"name": "mlp", "hidden": [8]}, "training": {"epochs": 3, "batch_size": 128}, "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}}, "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 2}}, "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9}}, "points": 5, "verdict": {"resamples": 100}}','ec8130918de5d4dbd91f21b5804efbbc30eddc163a351ec8f5a7dd784d895208',NULL,100,1,1.79498727778148603438e+09,1.79498727842287707332e+09,1.79498728181327605246e+09,1.0,NULL,NULL,'one basin','sgd and altsdp lie in one basin: on the straight line between them the train loss does not rise above its higher end; the tolerance is 0.05 nats. No barrier, but not constant: along the line the loss rises steadily from 1.56 at sgd to 1.70 at altsdp, more than the tolerance: one slope rather than a level valley. The fitted curve ''valley'' does not rise above its higher end; it is not needed for this finding, since even unrelated minima are usually joined by one. No control was measured: a minimum from another initialisation would show whether a barrier is to be expected at all between basins of this network. Test error along the line: 61.1 to 64.4 %.',0,0,NULL);
INSERT INTO "valley_experiments" VALUES(2,'1a1ed94506f07a52','cancelled','cancelled','cancelled','{"name": "cancelled", "model": {"name": "mlp", "hidden": [8]}, "training": {"epochs": 3, "batch_size": 128}, "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}}, "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 2}}, "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9}}, "points": 5, "verdict": {"resamples": 100}}','ec477f41aa96e8748d57d5bdc8dc9f2cb7e31d3b29e32291c0d1fdba534abe6b',NULL,100,1,1.79498728254400634765e+09,NULL,1.79498728256159877777e+09,0.0,NULL,NULL,NULL,NULL,0,0,NULL);
INSERT INTO "valley_experiments" VALUES(3,'1a1ed9450b0ec8bc','waiting','queued','minima','{"name": "waiting", "model": {"name": "mlp", "hidden": [8]}, "training": {"epochs": 3, "batch_size": 128}, "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}}, "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 2}}, "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9}}, "points": 5, "verdict": {"resamples": 100}}','05dea1455f01a9e5978d20818b9a5539e09a1af4247bd589ac949c3fd1e51bb1',NULL,100,1,1.79498728260856914521e+09,NULL,NULL,0.0,NULL,NULL,NULL,NULL,0,0,'api-23737-4ae8a6efb0d1');
CREATE TABLE valley_hands (
	experiment VARCHAR(32) NOT NULL, 
	worker VARCHAR(320) NOT NULL, 
	tasks INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	PRIMARY KEY (experiment, worker)
);
INSERT INTO "valley_hands" VALUES('1a1ed943dd514c5c','vm, cpu',11,2.27923088499937875894e+00);
CREATE TABLE valley_identity (
	id VARCHAR(32) NOT NULL, 
	confirmed BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "valley_identity" VALUES('26c1f229bf4c7a8d998fbed711655438',1);
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
CREATE TABLE valley_tasks (
	experiment VARCHAR(32) NOT NULL, 
	task VARCHAR(160) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	priority INTEGER NOT NULL, 
	issue INTEGER NOT NULL, 
	attempts INTEGER NOT NULL, 
	deaths INTEGER NOT NULL, 
	share FLOAT NOT NULL, 
	death_share FLOAT NOT NULL, 
	owner VARCHAR(64), 
	queued FLOAT NOT NULL, 
	started FLOAT, 
	seconds FLOAT, 
	error TEXT, 
	result BLOB, 
	PRIMARY KEY (experiment, task)
);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','train:sgd','train','kept',1000000111,1,1,0,1.0,0.0,NULL,1.79498727782911825182e+09,1.79498727842244386668e+09,2.037656016000028103e+00,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','train:altsdp','train','kept',1000000111,1,1,0,1.0,0.0,NULL,1.79498727783037900925e+09,1.79498728047623658178e+09,4.87576030000127502717e-02,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','sharpness:sgd','sharpness','kept',1000000152,1,1,0,1.0,0.0,NULL,1.79498728049241209033e+09,1.79498728053440880772e+09,3.3225359999960346613e-02,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','fit:valley','fit','kept',1000000121,1,1,0,1.0,0.0,NULL,1.79498728058306312562e+09,1.79498728065703344342e+09,2.86348069998894061427e-02,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','line:sgd-altsdp','line','kept',1000000151,1,1,0,1.0,0.0,NULL,1.79498728058402967451e+09,1.79498728069486045838e+09,1.03670850000980863114e-02,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','sharpness:altsdp','sharpness','kept',1000000152,1,1,0,1.0,0.0,NULL,1.79498728058463025095e+09,1.79498728071153378482e+09,0.0410322879999967,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','frame:valley','frame','kept',1000000131,1,1,0,1.0,0.0,NULL,1.79498728078075504301e+09,1.79498728083891868588e+09,2.12170199984029750339e-03,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','curve:valley','curve','kept',1000000151,1,1,0,1.0,0.0,NULL,1.79498728078157663342e+09,1.7949872808480505943e+09,1.23033999998369836248e-02,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','surface:valley:0','surface','kept',1000000141,1,1,0,1.0,0.0,NULL,1.79498728088149881367e+09,1.79498728094787645334e+09,2.60125569998308492358e-02,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','surface:valley:1','surface','kept',1000000141,1,1,0,1.0,0.0,NULL,1.79498728088221669199e+09,1.79498728098210144047e+09,3.43857489999663812341e-02,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed943dd514c5c','verdict:experiment','verdict','kept',1000000161,1,1,0,1.0,0.0,NULL,1.7949872808827710152e+09,1.79498728102052807808e+09,4.73431799991885782219e-03,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed9450b0ec8bc','train:sgd','train','queued',1000000311,1,0,0,0.0,0.0,NULL,1.79498728261825060844e+09,NULL,NULL,NULL,NULL);
INSERT INTO "valley_tasks" VALUES('1a1ed9450b0ec8bc','train:altsdp','train','queued',1000000311,1,0,0,0.0,0.0,NULL,1.7949872826190552712e+09,NULL,NULL,NULL,NULL);
CREATE TABLE valley_version (
	version INTEGER NOT NULL, 
	suits INTEGER
);
INSERT INTO "valley_version" VALUES(1,1);
INSERT INTO "valley_version" VALUES(2,1);
INSERT INTO "valley_version" VALUES(3,1);
INSERT INTO "valley_version" VALUES(4,1);
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
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c.1','gASVLgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlEsBhpSMBmt3YXJnc5R9lHUu',1794987277000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:train:sgd:1','gASVOgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwJdHJhaW46c2dklEsBh5SMBmt3YXJnc5R9lHUu',1794987277000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:train:altsdp:1','gASVPQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwMdHJhaW46YWx0c2RwlEsBh5SMBmt3YXJnc5R9lHUu',1794987277000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:sharpness:sgd:1','gASVPgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwNc2hhcnBuZXNzOnNnZJRLAYeUjAZrd2FyZ3OUfZR1Lg==',1794987280000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:fit:valley:1','gASVOwAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwKZml0OnZhbGxleZRLAYeUjAZrd2FyZ3OUfZR1Lg==',1794987280000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:line:sgd-altsdp:1','gASVQAAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwPbGluZTpzZ2QtYWx0c2RwlEsBh5SMBmt3YXJnc5R9lHUu',1794987280000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:sharpness:altsdp:1','gASVQQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwQc2hhcnBuZXNzOmFsdHNkcJRLAYeUjAZrd2FyZ3OUfZR1Lg==',1794987280000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:frame:valley:1','gASVPQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwMZnJhbWU6dmFsbGV5lEsBh5SMBmt3YXJnc5R9lHUu',1794987280000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:curve:valley:1','gASVPQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwMY3VydmU6dmFsbGV5lEsBh5SMBmt3YXJnc5R9lHUu',1794987280000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:surface:valley:0:1','gASVQQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwQc3VyZmFjZTp2YWxsZXk6MJRLAYeUjAZrd2FyZ3OUfZR1Lg==',1794987280000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:surface:valley:1:1','gASVQQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwQc3VyZmFjZTp2YWxsZXk6MZRLAYeUjAZrd2FyZ3OUfZR1Lg==',1794987280000);
INSERT INTO "workflow_input" VALUES('1a1ed943dd514c5c:verdict:experiment:1','gASVQwAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0M2RkNTE0YzVjlIwSdmVyZGljdDpleHBlcmltZW50lEsBh5SMBmt3YXJnc5R9lHUu',1794987280000);
INSERT INTO "workflow_input" VALUES('1a1ed94506f07a52.1','gASVLgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NTA2ZjA3YTUylEsBhpSMBmt3YXJnc5R9lHUu',1794987282000);
INSERT INTO "workflow_input" VALUES('1a1ed9450b0ec8bc.1','gASVLgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NTBiMGVjOGJjlEsBhpSMBmt3YXJnc5R9lHUu',1794987282000);
INSERT INTO "workflow_input" VALUES('1a1ed9450b0ec8bc:train:sgd:1','gASVOgAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NTBiMGVjOGJjlIwJdHJhaW46c2dklEsBh5SMBmt3YXJnc5R9lHUu',1794987282000);
INSERT INTO "workflow_input" VALUES('1a1ed9450b0ec8bc:train:altsdp:1','gASVPQAAAAAAAAB9lCiMBGFyZ3OUjBAxYTFlZDk0NTBiMGVjOGJjlIwMdHJhaW46YWx0c2RwlEsBh5SMBmt3YXJnc5R9lHUu',1794987282000);
CREATE TABLE workflow_output (
    workflow_uuid TEXT NOT NULL PRIMARY KEY,
    output TEXT,
    error TEXT,
    retention_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:train:sgd:1','gAROLg==',NULL,1794987280000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:train:altsdp:1','gAROLg==',NULL,1794987280000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:sharpness:sgd:1','gAROLg==',NULL,1794987280000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:fit:valley:1','gAROLg==',NULL,1794987280000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:line:sgd-altsdp:1','gAROLg==',NULL,1794987280000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:sharpness:altsdp:1','gAROLg==',NULL,1794987280000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:frame:valley:1','gAROLg==',NULL,1794987280000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:curve:valley:1','gAROLg==',NULL,1794987280000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:surface:valley:0:1','gAROLg==',NULL,1794987280000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:surface:valley:1:1','gAROLg==',NULL,1794987281000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c:verdict:experiment:1','gAROLg==',NULL,1794987281000);
INSERT INTO "workflow_output" VALUES('1a1ed943dd514c5c.1','gAROLg==',NULL,1794987281000);
INSERT INTO "workflow_output" VALUES('1a1ed94506f07a52.1','gAROLg==',NULL,1794987282000);
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
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c.1','SUCCESS','experiment',NULL,NULL,NULL,NULL,NULL,NULL,'api-23737-4ae8a6efb0d1',1794987277000,1794987281000,'jobs-1','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987281000,'null',NULL,NULL,0,'valleyscope','940d26f6-7fa8-4006-a2dd-d6620d020041');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:train:sgd:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987277000,1794987280000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987278000,NULL,1000000111,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987280000,'null',NULL,NULL,0,'valleyscope','7ae57147-cd3a-436f-9ebc-9d4fd05cc833');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:train:altsdp:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987277000,1794987280000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987280000,NULL,1000000111,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987280000,'null',NULL,NULL,0,'valleyscope','1bb052c3-a999-43d4-9348-bd89d46ef04b');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:sharpness:sgd:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987280000,1794987280000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987280000,NULL,1000000152,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987280000,'null',NULL,NULL,0,'valleyscope','38468cd9-fc87-458c-8748-eafa3b05dcc0');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:fit:valley:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987280000,1794987280000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987280000,NULL,1000000121,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987280000,'null',NULL,NULL,0,'valleyscope','63940765-ea6e-46d1-b4f9-3c32535430c8');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:line:sgd-altsdp:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987280000,1794987280000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987280000,NULL,1000000151,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987280000,'null',NULL,NULL,0,'valleyscope','baf1d69d-deb4-4611-b4a4-807794f44103');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:sharpness:altsdp:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987280000,1794987280000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987280000,NULL,1000000152,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987280000,'null',NULL,NULL,0,'valleyscope','a00c533b-686a-4ce9-b2eb-894792c6ec06');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:frame:valley:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987280000,1794987280000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987280000,NULL,1000000131,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987280000,'null',NULL,NULL,0,'valleyscope','9963306e-6459-4201-a0bd-fa6096263616');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:curve:valley:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987280000,1794987280000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987280000,NULL,1000000151,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987280000,'null',NULL,NULL,0,'valleyscope','97ff630b-bb2d-4f37-990f-42a834d31a4f');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:surface:valley:0:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987280000,1794987280000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987280000,NULL,1000000141,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987280000,'null',NULL,NULL,0,'valleyscope','4f9905ea-6f37-444c-81d7-8f94c2102af0');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:surface:valley:1:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987280000,1794987281000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987280000,NULL,1000000141,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987281000,'null',NULL,NULL,0,'valleyscope','585b8fbe-19f5-4aaf-bb14-cfd9aa4a18a9');
INSERT INTO "workflow_status" VALUES('1a1ed943dd514c5c:verdict:experiment:1','SUCCESS','task',NULL,NULL,NULL,NULL,NULL,NULL,'worker-23777-d42107e290d9',1794987280000,1794987281000,'jobs-1',NULL,NULL,NULL,1,'gpu',NULL,NULL,NULL,1794987281000,NULL,1000000161,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987281000,'null',NULL,NULL,0,'valleyscope','b45379fa-8ecb-4902-98b6-1ae572690269');
INSERT INTO "workflow_status" VALUES('1a1ed94506f07a52.1','SUCCESS','experiment',NULL,NULL,NULL,NULL,NULL,NULL,'api-23737-4ae8a6efb0d1',1794987282000,1794987282000,'jobs-1','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,1794987282000,'null',NULL,NULL,0,'valleyscope','da19e795-fe31-4b42-8afe-ad4c914f2113');
INSERT INTO "workflow_status" VALUES('1a1ed9450b0ec8bc.1','ENQUEUED','experiment',NULL,NULL,NULL,NULL,NULL,NULL,'api-23737-4ae8a6efb0d1',1794987282000,1794987283000,'jobs-1','',NULL,NULL,0,'control',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,NULL,'null',NULL,NULL,0,'valleyscope','60cc2cc6-ccff-4441-980a-40f118a651de');
INSERT INTO "workflow_status" VALUES('1a1ed9450b0ec8bc:train:sgd:1','ENQUEUED','task',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794987282000,1794987282000,'jobs-1',NULL,NULL,NULL,0,'gpu',NULL,NULL,NULL,NULL,NULL,1000000311,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,NULL,'null',NULL,NULL,0,'valleyscope','435effa9-78b8-4fd6-97ac-0e3428a71937');
INSERT INTO "workflow_status" VALUES('1a1ed9450b0ec8bc:train:altsdp:1','ENQUEUED','task',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794987282000,1794987282000,'jobs-1',NULL,NULL,NULL,0,'gpu',NULL,NULL,NULL,NULL,NULL,1000000311,NULL,NULL,NULL,NULL,'py_pickle',NULL,0,0,NULL,'null',NULL,NULL,0,'valleyscope','9650adcd-e3f2-4f96-a581-1bbe224a1f4d');
CREATE INDEX valley_experiments_number ON valley_experiments (deleted, number);
CREATE INDEX valley_experiments_state ON valley_experiments (deleted, state, number);
CREATE INDEX valley_tasks_experiment ON valley_tasks (experiment, state);
CREATE INDEX valley_tasks_state ON valley_tasks (state, priority);
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
INSERT INTO "sqlite_sequence" VALUES('valley_experiments',3);
INSERT INTO "sqlite_sequence" VALUES('valley_events',32);
COMMIT;
