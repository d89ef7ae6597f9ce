"""The tables of the memory, as migrations: registered functions, each committed together with its own record.

`memory.db` (all but pictures) and `frames.db` (JPEGs) are two encrypted SQLite files. Every derived row can name what
it came from in `provenance`; a line is part of its trace and reaches it by its foreign key. Times are UTC POSIX seconds
(REAL). JSON columns hold UTF-8 text. Vectors are little-endian float32.

A picture's id is given by `key_frame` or `crop` in memory.db and is the primary key of its JPEG in frames.db. Whenever
such a row goes, by whatever way, a trigger notes the picture in `discarded`, and the writer removes the JPEG later.
"""

from __future__ import annotations

import apsw

from edge.memory import corrections, index, jobs
from edge.memory.migrations import Migrations
from edge.memory.tiers import experience, facts, graph, procedural, scene, timeline, visual
from edge.memory.upkeep import forget

APPLICATION_MEMORY = 0x52574D31  # "RWM1"
APPLICATION_FRAMES = 0x52574631  # "RWF1"

MEMORY = Migrations(APPLICATION_MEMORY)
FRAMES = Migrations(APPLICATION_FRAMES)

MEMORY_V1 = """
create table camera(
  id integer primary key autoincrement, user text not null, name text not null, created real not null,
  unique(user, name));
create table source(
  id integer primary key autoincrement, camera integer not null references camera(id), uri text not null,
  kind text not null, fingerprint text not null, start real not null, duration real, position real not null default 0,
  next_segment integer not null default 0, finished integer not null default 0, updated real not null,
  unique(camera, fingerprint, start));
create table trace(
  id integer primary key autoincrement, camera integer not null references camera(id),
  source integer references source(id), start real not null, end real not null, text text not null, mode text not null,
  reason text, counts text not null, detail text not null, ingested real not null, embedder text not null default '');
create index trace_time on trace(camera, start);
create index trace_start on trace(start);
create index trace_end on trace(end);
create table line(
  id integer primary key autoincrement, trace integer not null references trace(id) on delete cascade,
  at real not null, text text not null);
create index line_trace on line(trace);
create table entity(
  id integer primary key autoincrement, user text not null, kind text not null, number integer not null, name text,
  name_source text not null default 'none', first_seen real not null, last_seen real not null,
  merged_into integer references entity(id), unique(user, kind, number));
create index entity_name on entity(user, name collate nocase);
create table entity_number(
  user text not null, series text not null, last integer not null, primary key(user, series)) without rowid;
create table embedder(name text primary key, dimension integer not null) without rowid;
create table observation(
  id integer primary key autoincrement, trace integer not null references trace(id) on delete cascade,
  anchor text not null, label text not null, entity integer references entity(id), start real not null,
  end real not null, text text not null, score real not null, boxes text not null, detail text not null);
create index observation_trace on observation(trace);
create index observation_entity on observation(entity, start);
create index observation_label on observation(label, start);
create table utterance(
  id integer primary key autoincrement, trace integer not null references trace(id) on delete cascade,
  start real not null, end real not null, text text not null, speaker integer references entity(id), voice text,
  speaker_name text, confidence real not null);
create index utterance_trace on utterance(trace);
create index utterance_speaker on utterance(speaker, start);
create table decision(
  id integer primary key autoincrement, trace integer not null references trace(id) on delete cascade,
  anchor text not null, outcome text not null, entity integer references entity(id), reason text not null,
  evidence text not null);
create index decision_trace on decision(trace);
create index decision_entity on decision(entity);
create table gallery(
  id integer primary key autoincrement, entity integer not null references entity(id) on delete cascade,
  modality text not null, slot integer not null, embedder text not null, embedding blob not null,
  quality real not null, count integer not null, observation integer references observation(id) on delete set null,
  unique(entity, modality, embedder, slot));
create index gallery_observation on gallery(observation);
create table pending(
  id integer primary key autoincrement, trace integer not null references trace(id) on delete cascade,
  observation integer references observation(id) on delete cascade, camera integer not null references camera(id),
  modality text not null, embedder text not null, embedding blob not null, quality real not null, at real not null,
  expires real not null);
create index pending_expiry on pending(camera, expires);
create index pending_trace on pending(trace);
create index pending_observation on pending(observation);
create table name_claim(
  id integer primary key autoincrement, entity integer not null references entity(id) on delete cascade,
  name text not null, source text not null, utterance integer references utterance(id) on delete set null,
  at real not null, accepted integer not null);
create index name_claim_entity on name_claim(entity);
create index name_claim_utterance on name_claim(utterance);
create table name_history(
  id integer primary key autoincrement, entity integer not null references entity(id) on delete cascade, old_name text,
  old_source text not null, new_name text, new_source text not null, at real not null,
  claim integer references name_claim(id) on delete set null);
create index name_history_entity on name_history(entity);
create index name_history_claim on name_history(claim);
create table key_frame(
  id integer primary key autoincrement, trace integer not null references trace(id) on delete cascade,
  at real not null, anchors text not null, width integer not null, height integer not null);
create index key_frame_trace on key_frame(trace);
create table crop(
  id integer primary key autoincrement, gallery integer not null unique references gallery(id) on delete cascade,
  observation integer references observation(id) on delete set null, at real not null, width integer not null,
  height integer not null);
create index crop_observation on crop(observation);
create table discarded(kind text not null, picture integer not null, primary key(kind, picture)) without rowid;
create trigger key_frame_gone after delete on key_frame begin insert into discarded values('frame', old.id); end;
create trigger crop_gone after delete on crop begin insert into discarded values('crop', old.id); end;
create table provenance(
  item_kind text not null, item integer not null, source_kind text not null, source integer not null,
  primary key(item_kind, item, source_kind, source)) without rowid;
create index provenance_source on provenance(source_kind, source);
"""

FRAMES_V1 = """
create table frame(id integer primary key, jpeg blob not null);
create table crop(id integer primary key, jpeg blob not null);
"""


@MEMORY.register("the first tables")
def _memory_1(connection: apsw.Connection) -> None:
    connection.execute(MEMORY_V1)


@MEMORY.register("search by words and by vectors")
def _memory_2(connection: apsw.Connection) -> None:
    index.create(connection)


@MEMORY.register("durable jobs")
def _memory_3(connection: apsw.Connection) -> None:
    jobs.create(connection)


@MEMORY.register("evidence of identity for each observation; corrections that can be undone")
def _memory_4(connection: apsw.Connection) -> None:
    corrections.create(connection)


@MEMORY.register("working memory and the timeline tree")
def _memory_5(connection: apsw.Connection) -> None:
    timeline.create(connection)


@MEMORY.register("rules, reminders, and what was sent")
def _memory_6(connection: apsw.Connection) -> None:
    procedural.create(connection)


@MEMORY.register("what was forgotten, and what may be kept how long")
def _memory_7(connection: apsw.Connection) -> None:
    forget.create(connection)


@MEMORY.register("search in bounded time")
def _memory_8(connection: apsw.Connection) -> None:
    index.create_terms(connection)


@MEMORY.register("what is usual in front of each camera; what moments look like; pictures by their time")
def _memory_9(connection: apsw.Connection) -> None:
    scene.create(connection)
    visual.create(connection)


@MEMORY.register("what was asked, and how retrieval went")
def _memory_10(connection: apsw.Connection) -> None:
    experience.create(connection)


@MEMORY.register("who and what is related to whom and what")
def _memory_11(connection: apsw.Connection) -> None:
    graph.create(connection)


@MEMORY.register("facts about people and things, with their time")
def _memory_12(connection: apsw.Connection) -> None:
    facts.create(connection)


@MEMORY.register("sealed blocks of the index")
def _memory_13(connection: apsw.Connection) -> None:
    index.create_blocks(connection)


@MEMORY.register("cells of what is alike in sealed blocks")
def _memory_14(connection: apsw.Connection) -> None:
    index.create_cells(connection)


@MEMORY.register("words as they are meant in their moments")
def _memory_15(connection: apsw.Connection) -> None:
    index.create_word_signs(connection)


@FRAMES.register("the first tables")
def _frames_1(connection: apsw.Connection) -> None:
    connection.execute(FRAMES_V1)
