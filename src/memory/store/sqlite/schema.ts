import { RuvLLMError } from '../../../core/errors.ts';
import type { FieldDeclaration } from '../../fields.ts';
import { inTransaction, type SqlDatabase } from './sql-database.ts';
import { checkVersion, numberOf } from '../row-values.ts';

/**
 * Visible columns are numbers or keyed hashes; names, words, bodies and vectors are in `sealed`.
 * - tenant.erasing: 1 from before the key is destroyed until the rows are deleted.
 * - record.seq: grows with every write. A vector index saved at seq S is updated with the records and departures above S.
 * - departure: a vector that left a set (deleted, or moved to another set).
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE setting (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE tenant (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    erasing INTEGER NOT NULL DEFAULT 0
  );
  CREATE TABLE vector_set (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    space TEXT NOT NULL,
    dim INTEGER NOT NULL,
    UNIQUE (tenant, kind, space)
  );
  CREATE TABLE record (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    id BLOB NOT NULL,
    kind INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    vector_set INTEGER,
    fields TEXT NOT NULL,
    sealed BLOB NOT NULL,
    UNIQUE (tenant, id)
  );
  CREATE INDEX record_time ON record (tenant, kind, created_ms, id);
  CREATE INDEX record_expiry ON record (expires_ms) WHERE expires_ms IS NOT NULL;
  CREATE INDEX record_vector ON record (vector_set, seq) WHERE vector_set IS NOT NULL;
  CREATE TABLE departure (
    vector_set INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (vector_set, seq, row)
  ) WITHOUT ROWID;
  CREATE TABLE edge (
    source INTEGER NOT NULL,
    target INTEGER NOT NULL,
    relation TEXT NOT NULL,
    tenant INTEGER NOT NULL,
    weight REAL NOT NULL,
    updated_ms INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (source, target, relation)
  ) WITHOUT ROWID;
  CREATE INDEX edge_target ON edge (target);
  CREATE INDEX edge_tenant ON edge (tenant);
  `,
];

export const SCHEMA_VERSION = MIGRATIONS.length;

/** "RVLM"; a new database has 0. */
const APPLICATION_ID = 0x52564c4d;

function readPragma(database: SqlDatabase, name: string): number {
  return numberOf(Object.values(database.prepare(`PRAGMA ${name}`).all()[0] ?? {})[0]);
}

/** The version of the database, 0 for a new one. Throws for other databases and newer versions. */
export function checkSchema(database: SqlDatabase): number {
  const application = readPragma(database, 'application_id');
  const version = readPragma(database, 'user_version');
  const numTables = numberOf(database.prepare('SELECT count(*) AS n FROM sqlite_schema').all()[0]?.['n']);
  if (application === 0 && version === 0 && numTables === 0) return 0;
  if (application !== APPLICATION_ID) {
    throw new RuvLLMError('io', `the database is not a ruvllm memory (application id ${application})`);
  }
  return checkVersion(version, SCHEMA_VERSION);
}

/** Migrates the database, each step in a transaction, and creates the indexes of declared fields. */
export function migrate(database: SqlDatabase, fields: ReadonlyMap<string, FieldDeclaration>, nowMs: number): void {
  for (let version = checkSchema(database); version < SCHEMA_VERSION; version++) {
    inTransaction(database, () => {
      if (version === 0)
        database.exec('CREATE TABLE migration (version INTEGER PRIMARY KEY, applied_ms INTEGER NOT NULL)');
      database.exec(MIGRATIONS[version]!);
      database.prepare('INSERT INTO migration (version, applied_ms) VALUES (?, ?)').run(version + 1, nowMs);
      database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${version + 1}`);
    });
  }
  indexFields(database, fields);
}

/** A field in SQL; `checkRegistry` has checked the name. */
export function fieldExpression(name: string): string {
  return `json_extract(fields, '$.${name}')`;
}

/** Partial indexes: records without the field are not in them. */
function indexFields(database: SqlDatabase, fields: ReadonlyMap<string, FieldDeclaration>): void {
  const wanted = new Map([...fields].filter(([, field]) => field.isIndexed).map(([name]) => [`field_${name}`, name]));
  const rows = database.prepare(
    `SELECT name FROM sqlite_schema WHERE type = 'index' AND name LIKE 'field\\_%' ESCAPE '\\'`,
  );
  const present = new Set(rows.all().map((row) => String(row['name'])));
  const missing = [...wanted].filter(([index]) => !present.has(index));
  const surplus = [...present].filter((index) => !wanted.has(index));
  if (missing.length === 0 && surplus.length === 0) return;
  inTransaction(database, () => {
    for (const index of surplus) database.exec(`DROP INDEX "${index}"`);
    for (const [index, name] of missing) {
      const expression = fieldExpression(name);
      database.exec(
        `CREATE INDEX "${index}" ON record (tenant, ${expression}, kind, created_ms) WHERE ${expression} IS NOT NULL`,
      );
    }
  });
}
