"""Corrections by the owner, and the evidence of identity that they act on: the tables.

* `sample`: what was offered to galleries, in order. Galleries are a fold of the samples under their present owners. The
  crop of a sample is a row of `crop`, which also points at the slot that shows it, if any.
* `correction`: what the owner decided, in order; undone when `undone_at` is set. A naming is one, too. `claims` is the
  last name claim before it, so that names can be derived again in the order in which things became known.
* `correction_item`: the sightings of a split, row by row.
* `moved`: rows that belong to somebody else than was decided first. `origin` is who that was; who it is now is in the row
  itself. Active corrections, applied in order to the origins, give the present owners.
* `original_text`: texts as they were before a correction changed a mention in them.
* `given_name`: names that came with an entity, such as those of replayed descriptions.
* `reindex`: traces whose words are about to be indexed again, some at a time, so that commits need not wait for all.
* `identity_state`: how many times corrections or forgetting changed who is who, and whether galleries wait to be made
  again from their samples.
"""

from __future__ import annotations

import apsw

CORRECTIONS_V1 = """
create table sample(
  id integer primary key autoincrement, trace integer not null references trace(id) on delete cascade,
  observation integer references observation(id) on delete cascade, anchor text not null,
  entity integer not null references entity(id) on delete cascade, modality text not null, embedder text not null,
  embedding blob not null, quality real not null, slots integer not null, ema real not null, bound real not null);
create index sample_trace on sample(trace);
create index sample_observation on sample(observation);
create index sample_entity on sample(entity);
create table correction(
  id integer primary key autoincrement, user text not null, kind text not null,
  person integer not null references entity(id) on delete cascade,
  other integer references entity(id) on delete cascade, created integer not null default 0, name text,
  name_source text not null default 'none', at real not null, claims integer not null, undone_at real);
create index correction_person on correction(person);
create index correction_other on correction(other);
create table correction_item(
  correction integer not null references correction(id) on delete cascade, kind text not null, item integer not null,
  primary key(correction, kind, item)) without rowid;
create table moved(
  kind text not null, item integer not null, trace integer references trace(id) on delete cascade,
  origin integer not null references entity(id) on delete cascade, primary key(kind, item)) without rowid;
create index moved_trace on moved(trace);
create index moved_origin on moved(origin);
create table original_text(
  kind text not null, item integer not null, trace integer not null references trace(id) on delete cascade,
  text text not null, primary key(kind, item)) without rowid;
create index original_text_trace on original_text(trace);
create table given_name(
  entity integer primary key references entity(id) on delete cascade, name text not null, source text not null,
  at real not null);
create table identity_state(
  one integer primary key check(one = 1), generation integer not null, galleries_due integer not null);
insert into identity_state values(1, 0, 0);
create table reindex(trace integer primary key references trace(id) on delete cascade);
"""

# A crop belongs to its sample; those of older memories, which have none, to their slot.
CROPS_V2 = """
create table crop_new(
  id integer primary key autoincrement, gallery integer unique references gallery(id) on delete set null,
  sample integer unique references sample(id) on delete cascade,
  observation integer references observation(id) on delete set null, at real not null, width integer not null,
  height integer not null);
insert into crop_new select id, gallery, null, observation, at, width, height from crop;
insert into sqlite_sequence(name, seq) select 'crop_new', 0
  where not exists (select 1 from sqlite_sequence where name = 'crop_new');
update sqlite_sequence set seq = coalesce((select seq from sqlite_sequence where name = 'crop'), 0)
  where name = 'crop_new';
drop table crop;
alter table crop_new rename to crop;
create index crop_observation on crop(observation);
create trigger crop_gone after delete on crop begin
  insert into discarded values('crop', old.id);
  delete from provenance where item_kind = 'crop' and item = old.id;
end;
create trigger sample_gone after delete on sample begin
  delete from provenance where item_kind = 'sample' and item = old.id;
end;
create trigger crop_let_go after update of gallery on crop when new.gallery is null and new.sample is null
  begin delete from crop where id = new.id; end;
"""

# What an older memory knows of each person is all in their slots: each becomes a sample.
FROM_SLOTS = """
insert into sample(trace, observation, anchor, entity, modality, embedder, embedding, quality, slots, ema, bound)
  select o.trace, o.id, o.anchor, g.entity, g.modality, g.embedder, g.embedding, g.quality,
    iif(g.modality = 'body', 1, (select max(slot) + 1 from gallery)), 0.2, iif(g.modality = 'body', 2.0, 0.5)
  from gallery g join observation o on o.id = g.observation order by o.trace, g.id;
update crop set sample = (
  select min(s.id) from sample s join gallery g on g.id = crop.gallery
  where s.entity = g.entity and s.modality = g.modality and s.embedder = g.embedder and s.embedding = g.embedding);
insert into given_name(entity, name, source, at)
  select entity, new_name, new_source, at from name_history h where claim is null and new_source in ('addressed', 'self')
  and old_name is null and id = (select min(id) from name_history where entity = h.entity);
insert into correction(user, kind, person, name, name_source, at, claims)
  select e.user, 'name', h.entity, h.new_name, h.new_source, h.at,
    coalesce((select max(c.id) from name_claim c where c.at <= h.at), 0)
  from name_history h join entity e on e.id = h.entity
  where h.claim is null and (h.new_source = 'user' or h.new_name is null) order by h.id;
"""


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
    for statements in (CORRECTIONS_V1, CROPS_V2, FROM_SLOTS):
        connection.execute(statements)
