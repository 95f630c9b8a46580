import { RuvLLMError } from '../../../core/errors.ts';
import type { FieldDeclaration } from '../../fields.ts';
import { refuse } from '../../../core/options.ts';
import type { SqlClient, SqlPool } from './sql-client.ts';
import { findExtension, type VectorExtension } from './vector-extension.ts';
import { checkVersion, numberOf, textOf } from '../row-values.ts';

/** Who searches vectors: the database, which can then read them, or this process, over sealed rows. */
export const VECTOR_MODES = ['pgvector', 'sealed'] as const;
export type VectorMode = (typeof VECTOR_MODES)[number];

/** Tables by their full names. */
export interface Names {
  readonly schema: string;
  table(name: string): string;
}

const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,39}$/;

export function createNames(schema: string): Names {
  if (!SCHEMA_NAME.test(schema) || schema.startsWith('pg_')) {
    refuse('schema must be 1 to 40 lower-case letters, digits and underscores', 'schema');
  }
  return { schema, table: (name) => `"${schema}"."${name}"` };
}

/**
 * Visible columns are numbers or keyed hashes; names, words and bodies are in `sealed`.
 * - tenant.key: the wrapped key; null from the erasure until the rows are deleted.
 * - record.fields: words as keyed hashes.
 * - record.terms: the words of the text as keyed hashes; null with sealed vectors, and before the first search of older rows.
 */
const MIGRATIONS: readonly ((names: Names) => string)[] = [
  ({ table }) => `
  CREATE TABLE ${table('setting')} (name text PRIMARY KEY, value text NOT NULL);
  CREATE TABLE ${table('tenant')} (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    key bytea
  );
  CREATE TABLE ${table('vector_set')} (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant bigint NOT NULL REFERENCES ${table('tenant')},
    kind smallint NOT NULL,
    space text NOT NULL,
    dim integer NOT NULL,
    UNIQUE (tenant, kind, space)
  );
  CREATE TABLE ${table('record')} (
    "row" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant bigint NOT NULL REFERENCES ${table('tenant')},
    id uuid NOT NULL,
    kind smallint NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    expires_ms bigint,
    version bigint NOT NULL,
    vector_set bigint REFERENCES ${table('vector_set')},
    fields jsonb NOT NULL,
    sealed bytea NOT NULL,
    UNIQUE (tenant, id)
  );
  ALTER TABLE ${table('record')} ALTER COLUMN sealed SET STORAGE EXTERNAL;
  CREATE INDEX record_time ON ${table('record')} (tenant, kind, created_ms, id);
  CREATE INDEX record_expiry ON ${table('record')} (expires_ms) WHERE expires_ms IS NOT NULL;
  CREATE INDEX record_vector ON ${table('record')} (vector_set, "row") WHERE vector_set IS NOT NULL;
  CREATE TABLE ${table('edge')} (
    source bigint NOT NULL REFERENCES ${table('record')} ON DELETE CASCADE,
    target bigint NOT NULL REFERENCES ${table('record')} ON DELETE CASCADE,
    relation text NOT NULL,
    tenant bigint NOT NULL,
    weight double precision NOT NULL,
    updated_ms bigint NOT NULL,
    sealed bytea NOT NULL,
    PRIMARY KEY (source, target, relation)
  );
  CREATE INDEX edge_target ON ${table('edge')} (target);
  CREATE INDEX edge_tenant ON ${table('edge')} (tenant);
  `,
  // Archived segments of audit logs. EXTERNAL, because they are compressed already.
  ({ table }) => `
  CREATE TABLE ${table('segment')} (
    name text PRIMARY KEY,
    tenant bigint NOT NULL REFERENCES ${table('tenant')},
    sealed bytea NOT NULL
  );
  ALTER TABLE ${table('segment')} ALTER COLUMN sealed SET STORAGE EXTERNAL;
  CREATE INDEX segment_tenant ON ${table('segment')} (tenant);
  `,
  ({ table }) => `
  ALTER TABLE ${table('record')} ADD COLUMN terms tsvector, ADD COLUMN num_terms integer;
  CREATE INDEX record_terms ON ${table('record')} USING gin (terms);
  `,
];

export const SCHEMA_VERSION = MIGRATIONS.length;

/** "RVLM": the namespace of our advisory locks. */
const LOCK_CLASS = 0x52564c4d;

/** Held until the end of the transaction by everything that changes tables. */
export async function lockSchema(client: SqlClient, { schema }: Names): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1::int, hashtext($2))', [LOCK_CLASS, schema]);
}

interface MigrateOptions<K> {
  readonly names: Names;
  readonly mode: VectorMode;
  readonly fields: ReadonlyMap<string, FieldDeclaration>;
  readonly nowMs: number;
  /** The sealed secrets, opened before anything is changed. */
  readonly header: { create(): string; open(header: string): K };
}

/** Migrates the schema in one transaction; others that start meanwhile wait. */
export function migrate<K>(
  pool: SqlPool,
  options: MigrateOptions<K>,
): Promise<{ keys: K; extension: VectorExtension | null }> {
  const { names, mode, fields, nowMs, header } = options;
  return pool.transaction(async (client) => {
    await lockSchema(client, names);
    const version = await readVersion(client, names);
    const known = version === 0 ? null : await readSettings(client, names);
    const keys = known === null ? null : header.open(known.header);
    if (known !== null && known.vectors !== mode) {
      refuse(`the memory was created with vectors "${known.vectors}", not "${mode}"`, 'vectors');
    }
    const extension = mode === 'pgvector' ? await findExtension(client) : null;
    if (version === 0) await createVersionTable(client, names);
    for (let next = version; next < SCHEMA_VERSION; next++) {
      await client.query(MIGRATIONS[next]!(names));
      await client.query(`INSERT INTO ${names.table('migration')} VALUES ($1, $2)`, [next + 1, nowMs]);
    }
    await indexFields(client, names, fields);
    if (keys !== null) return { keys, extension };
    const text = header.create();
    const insert = `INSERT INTO ${names.table('setting')} VALUES ('header', $1), ('vectors', $2)`;
    await client.query(insert, [text, mode]);
    return { keys: header.open(text), extension };
  });
}

async function readVersion(client: SqlClient, { schema, table }: Names): Promise<number> {
  const count = `SELECT count(*) AS n, count(*) FILTER (WHERE c.relname = 'migration') AS ours
    FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = $1 AND c.relkind = 'r'`;
  const { n, ours } = (await client.query(count, [schema])).rows[0]!;
  if (n === 0) return 0;
  if (ours === 0)
    throw new RuvLLMError('io', `the schema "${schema}" has ${numberOf(n)} tables of another application`);
  const { rows } = await client.query(`SELECT max(version) AS version FROM ${table('migration')}`);
  return checkVersion(numberOf(rows[0]?.['version']), SCHEMA_VERSION);
}

async function createVersionTable(client: SqlClient, { schema, table }: Names): Promise<void> {
  // Only if missing: a role that cannot create schemas can use an existing one.
  const { rows } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
  if (rows.length === 0) await client.query(`CREATE SCHEMA "${schema}"`);
  await client.query(`CREATE TABLE ${table('migration')} (version integer PRIMARY KEY, applied_ms bigint NOT NULL)`);
}

async function readSettings(client: SqlClient, { table }: Names): Promise<{ header: string; vectors: string }> {
  const { rows } = await client.query(`SELECT name, value FROM ${table('setting')}`);
  const values = new Map(rows.map((row) => [row['name'], row['value']]));
  return { header: textOf(values.get('header')), vectors: textOf(values.get('vectors')) };
}

/** Under the schema's lock, so that a second process sees the header of the first. */
export async function replaceHeader(client: SqlClient, names: Names, make: (header: string) => string): Promise<void> {
  await lockSchema(client, names);
  const { header } = await readSettings(client, names);
  await client.query(`UPDATE ${names.table('setting')} SET value = $1 WHERE name = 'header'`, [make(header)]);
}

/** A field in SQL; `checkRegistry` has checked the name. */
export const fieldExpression = (name: string): string => `(r.fields -> '${name}')`;

/** Creates missing indexes; drops none, because an older version may use the database too. */
async function indexFields(
  client: SqlClient,
  { schema, table }: Names,
  fields: ReadonlyMap<string, FieldDeclaration>,
): Promise<void> {
  const found = await client.query('SELECT indexname FROM pg_indexes WHERE schemaname = $1', [schema]);
  const present = new Set(found.rows.map((row) => row['indexname']));
  for (const [name, { isIndexed }] of fields) {
    if (!isIndexed || present.has(`field_${name}`)) continue;
    const expression = `(fields -> '${name}')`;
    await client.query(
      `CREATE INDEX "field_${name}" ON ${table('record')} (tenant, ${expression}, kind, created_ms) WHERE ${expression} IS NOT NULL`,
    );
  }
}
