import { RuvLLMError } from '../../../core/errors.ts';
import { parseUuid } from '../../../core/uuid.ts';
import { isTrusted, type JsonValue, type MemoryRecord, type RecordKind } from '../../types.ts';
import { searchableText } from '../../search/record-text.ts';
import { checkReplaces, type CheckedPut } from '../check-put.ts';
import type { CheckedFilter, CheckedFind } from '../check-query.ts';
import { checkLength } from '../checks.ts';
import { compareCursors } from '../cursor.ts';
import type { VectorSetRef } from '../vector-sets.ts';
import { filterToSql, TRUSTED } from './filter-sql.ts';
import type { OnCommit } from './group-commit.ts';
import {
  createRowOpener,
  FEW_COLUMNS,
  headOf,
  kindNumber,
  kindOf,
  openRow,
  RECORD_COLUMNS,
  sealRecord,
  visibleFields,
  type RowHead,
} from './record-row.ts';
import type { RecordCache } from './record-cache.ts';
import type { SqlDatabase, SqlRow } from './sql-database.ts';
import type { Tenant } from '../sealer.ts';
import { numberOf, numberOrNull } from '../row-values.ts';

/** A vector was added to a set, or (null) removed. */
type VectorChange = (setNo: number, row: number, vector: Float32Array | null) => void;
/** The text of a row was written, or (null) removed. */
type TextChange = (tenantNo: number, kind: RecordKind, row: number, text: (() => string) | null) => void;

export interface Records {
  /** In a transaction. */
  put(tenant: Tenant, put: CheckedPut, nowMs: number, onCommit: OnCommit): { id: string; version: number };
  get(tenant: Tenant, name: string, id: string): MemoryRecord | null;
  byRows(tenant: Tenant, name: string, rows: readonly number[], withVector: boolean): ReadonlyMap<number, MemoryRecord>;
  find(tenant: Tenant, name: string, query: CheckedFind): readonly MemoryRecord[];
  count(tenant: Tenant, filter: CheckedFilter): number;
  /** Matching rows of one kind; `hasVector`: only those with a vector. */
  matching(tenant: Tenant, kind: RecordKind, filter: CheckedFilter, hasVector: boolean): Set<number>;
  /** Rows that an exclusion filter leaves out; cached until the next write of the kind. */
  excluded(tenant: Tenant, kind: RecordKind, filter: CheckedFilter): ReadonlySet<number>;
  /** Rows of answers that are trusted; current at every commit. */
  trusted(tenant: Tenant, kind: RecordKind): ReadonlySet<number>;
  /** In a transaction: deletes a row and records that its vector left; null: not found. */
  delete(tenantNo: number, id: Uint8Array, onCommit: OnCommit): number | null;
  /** Outside of a transaction, because it caches. */
  findSet(tenant: Tenant, kind: RecordKind, space: string): VectorSetRef | null;
}

/** Approximate size of a cached record: a constant part, and per byte of text. */
const RECORD_BYTES = 512;
const TEXT_COST = 2;
/** Cached sets per tenant. */
const MAX_SETS = 1024;
/** Cached exclusions per tenant and kind: recall has one. */
const MAX_EXCLUSIONS = 8;

/** The `+` keeps SQLite from using the index by tenant, which would read all of a tenant's rows. */
export const SELECT_BY_ROWS = `SELECT ${FEW_COLUMNS} FROM record WHERE row IN (SELECT value FROM json_each(?)) AND +tenant = ?`;

interface RecordsContext {
  readonly database: SqlDatabase;
  readonly nextSeq: () => number;
  readonly onVector: VectorChange;
  readonly onText: TextChange;
  /** Called after a commit with the change of the number of records. */
  readonly onCount: (delta: number) => void;
  /** Called for a row that cannot be opened and is left out of results. */
  readonly onDamaged: (error: RuvLLMError) => void;
  readonly cache: RecordCache;
}

export function createRecords(context: RecordsContext): Records {
  const { database, nextSeq, onVector, onText, onCount, onDamaged, cache } = context;
  const selectHead = (tenantNo: number, id: Uint8Array): SqlRow | undefined =>
    database
      .prepare('SELECT row, kind, created_ms, version, vector_set FROM record WHERE tenant = ? AND id = ?')
      .all(tenantNo, id)[0];

  function setOf(tenant: Tenant, kind: RecordKind, space: string): VectorSetRef | null {
    const row = database
      .prepare('SELECT no, dim FROM vector_set WHERE tenant = ? AND kind = ? AND space = ?')
      .all(tenant.no, kindNumber(kind), tenant.sealer.nameOf('space', space))[0];
    return row === undefined ? null : { no: numberOf(row['no']), tenantId: tenant.id, dim: numberOf(row['dim']) };
  }

  /** By identity: an erased and recreated tenant is another one. */
  const knownSets = new WeakMap<Tenant, Map<string, VectorSetRef | null>>();

  function findSet(tenant: Tenant, kind: RecordKind, space: string): VectorSetRef | null {
    const sets = knownSets.get(tenant) ?? new Map<string, VectorSetRef | null>();
    const key = `${kind} ${space}`;
    const known = sets.get(key);
    if (known !== undefined) return known;
    const found = setOf(tenant, kind, space);
    if (sets.size >= MAX_SETS) sets.clear();
    knownSets.set(tenant, sets.set(key, found));
    return found;
  }

  function obtainSet(tenant: Tenant, { kind, space, vector }: CheckedPut): number | null {
    if (space === null || vector === null) return null;
    // Cached sets are committed; a transaction must not cache new ones.
    const known = knownSets.get(tenant)?.get(`${kind} ${space}`) ?? setOf(tenant, kind, space);
    if (known !== null) {
      checkLength(vector.length, known.dim);
      return known.no;
    }
    knownSets.get(tenant)?.delete(`${kind} ${space}`); // no read happens before the transaction ends
    return database
      .prepare('INSERT INTO vector_set (tenant, kind, space, dim) VALUES (?, ?, ?, ?)')
      .run(tenant.no, kindNumber(kind), tenant.sealer.nameOf('space', space), vector.length).lastRow;
  }

  function depart(setNo: number, row: number, seq: number, onCommit: OnCommit): void {
    database.prepare('INSERT INTO departure (vector_set, seq, row) VALUES (?, ?, ?)').run(setNo, seq, row);
    onCommit(() => onVector(setNo, row, null));
  }

  function write(head: RowHead, tenant: Tenant, sealed: Uint8Array, oldRow: number | null): number {
    const { kind, createdMs, updatedMs, expiresMs, version, seq, vectorSet, fieldsText } = head;
    const values = [kind, createdMs, updatedMs, expiresMs, version, seq, vectorSet, fieldsText, sealed];
    if (oldRow !== null) {
      cache.drop(oldRow); // no read happens before the transaction ends
      database
        .prepare(
          'UPDATE record SET kind = ?, created_ms = ?, updated_ms = ?, expires_ms = ?, version = ?, seq = ?, vector_set = ?, fields = ?, sealed = ? WHERE row = ?',
        )
        .run(...values, oldRow);
      return oldRow;
    }
    return database
      .prepare(
        'INSERT INTO record (kind, created_ms, updated_ms, expires_ms, version, seq, vector_set, fields, sealed, tenant, id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      )
      .run(...values, tenant.no, parseUuid(head.id)).lastRow;
  }

  /** By tenant number and kind; read by the first search, because few of many answers are trusted. */
  const trustedRows = new Map<string, Set<number>>();
  const trustedOf = (tenantNo: number, kind: RecordKind): Set<number> | undefined =>
    trustedRows.get(`${tenantNo} ${kind}`);

  /** By tenant number and kind, then by conditions. */
  const excludedRows = new Map<string, Map<string, ReadonlySet<number>>>();
  /** Before a write; no read happens before the transaction ends. */
  const dropExcluded = (tenantNo: number, kind: RecordKind): void => void excludedRows.delete(`${tenantNo} ${kind}`);

  function matching(tenant: Tenant, kind: RecordKind, filter: CheckedFilter, hasVector: boolean): Set<number> {
    const { from, sql, values } = filterToSql(filter, tenant.sealer);
    const statement = database.prepare(
      `SELECT row FROM ${from} WHERE tenant = ? AND kind = ?${hasVector ? ' AND vector_set IS NOT NULL' : ''}${sql}`,
    );
    return new Set(statement.all(tenant.no, kindNumber(kind), ...values).map((row) => numberOf(row['row'])));
  }

  const openOne = (row: SqlRow, tenant: Tenant, name: string): MemoryRecord =>
    openRow(row, tenant.id, name, tenant.sealer).record;

  /** One damaged row must not make the others of a list unreadable; it is reported. */
  function openEach<T>(rows: readonly SqlRow[], open: (row: SqlRow) => T): T[] {
    return rows.flatMap((row) => {
      try {
        return [open(row)];
      } catch (error) {
        if (!(error instanceof RuvLLMError) || error.data['isDamaged'] !== true) throw error;
        onDamaged(error);
        return [];
      }
    });
  }

  return {
    findSet,

    put(tenant, put, nowMs, onCommit) {
      const old = selectHead(tenant.no, parseUuid(put.id));
      checkReplaces(put, old && { version: numberOf(old['version']), kind: kindOf(numberOf(old['kind'])) });
      dropExcluded(tenant.no, put.kind);
      const seq = nextSeq();
      const vectorSet = obtainSet(tenant, put);
      const head: RowHead = {
        tenantId: tenant.id,
        id: put.id,
        kind: kindNumber(put.kind),
        createdMs: put.createdMs ?? (old === undefined ? nowMs : numberOf(old['created_ms'])),
        updatedMs: nowMs,
        expiresMs: put.expiresMs,
        version: old === undefined ? 1 : numberOf(old['version']) + 1,
        seq,
        vectorSet,
        fieldsText: visibleFields(put.fields, tenant.sealer),
      };
      const row = write(
        head,
        tenant,
        sealRecord(put, head, tenant.sealer),
        old === undefined ? null : numberOf(old['row']),
      );
      const oldSet = old === undefined ? null : numberOrNull(old['vector_set']);
      if (oldSet !== null && oldSet !== vectorSet) depart(oldSet, row, seq, onCommit);
      if (vectorSet !== null) onCommit(() => onVector(vectorSet, row, put.vector));
      const text = (): string => searchableText({ ...put, body: JSON.parse(put.bodyText) as JsonValue });
      onCommit(() => {
        if (old === undefined) onCount(1);
        onText(tenant.no, put.kind, row, text);
        if (isTrusted(put)) trustedOf(tenant.no, put.kind)?.add(row);
        else trustedOf(tenant.no, put.kind)?.delete(row);
      });
      return { id: put.id, version: head.version };
    },

    get(tenant, name, id) {
      const sql = `SELECT ${RECORD_COLUMNS} FROM record WHERE tenant = ? AND id = ?`;
      const row = database.prepare(sql).all(tenant.no, parseUuid(id))[0];
      return row === undefined ? null : openOne(row, tenant, name);
    },

    byRows(tenant, name, rows, withVector) {
      const openFew = createRowOpener(tenant.id, { tenant: name, sealer: tenant.sealer, withVector });
      const found = new Map<number, MemoryRecord>();
      const missing = withVector ? rows : rows.filter((row) => !take(row));
      if (missing.length === 0) return found;
      const rowsRead = database.prepare(SELECT_BY_ROWS).all(JSON.stringify(missing), tenant.no);
      const opened = openEach(rowsRead, (values) => ({ row: numberOf(values['row']), ...openFew(values) }));
      for (const { row, record, textBytes } of opened) {
        found.set(row, record);
        if (!withVector) cache.set(tenant, row, record, RECORD_BYTES + TEXT_COST * textBytes);
      }
      return found;

      function take(row: number): boolean {
        const record = cache.get(tenant, row);
        if (record !== undefined) found.set(row, record);
        return record !== undefined;
      }
    },

    find(tenant, name, { filter, order, limit, after }) {
      const condition = filterToSql(filter, tenant.sealer);
      const sign = order === 'newest' ? -1 : 1;
      const [direction, beyond] = order === 'newest' ? ['DESC', '<'] : ['ASC', '>'];
      const pageAfter = (place: CheckedFind['after'], numWanted: number): { row: SqlRow; head: RowHead }[] => {
        const beyondSql = place === null ? '' : ` AND (created_ms, id) ${beyond} (?, ?)`;
        const values = place === null ? [] : [place.createdMs, parseUuid(place.id)];
        const sql = `SELECT ${RECORD_COLUMNS} FROM ${condition.from} WHERE tenant = ? AND kind = ?${condition.sql}${beyondSql}
          ORDER BY created_ms ${direction}, id ${direction} LIMIT ?`;
        const rows = filter.kinds.flatMap((kind) =>
          database.prepare(sql).all(tenant.no, kindNumber(kind), ...condition.values, ...values, numWanted),
        );
        const heads = rows.map((row) => ({ row, head: headOf(row, tenant.id) }));
        return heads.sort((a, b) => sign * compareCursors(a.head, b.head)).slice(0, numWanted);
      };
      const found: MemoryRecord[] = [];
      // More than once only if rows were left out: a short page would look like the last one.
      for (let place = after; ;) {
        const numWanted = limit - found.length;
        const page = pageAfter(place, numWanted);
        found.push(...openEach(page.map(({ row }) => row), (row) => openOne(row, tenant, name))); // prettier-ignore
        if (page.length < numWanted || found.length === limit) return found;
        place = page.at(-1)!.head;
      }
    },

    count(tenant, filter) {
      const { from, sql, values } = filterToSql(filter, tenant.sealer);
      const statement = database.prepare(`SELECT count(*) AS n FROM ${from} WHERE tenant = ? AND kind = ?${sql}`);
      return filter.kinds.reduce(
        (sum, kind) => sum + numberOf(statement.all(tenant.no, kindNumber(kind), ...values)[0]?.['n']),
        0,
      );
    },

    matching,

    excluded(tenant, kind, filter) {
      const key = `${tenant.no} ${kind}`;
      const sets = excludedRows.get(key) ?? new Map<string, ReadonlySet<number>>();
      const conditions = JSON.stringify(filter.conditions.map(({ field, values: [word] }) => [field, word]));
      const cached = sets.get(conditions);
      if (cached !== undefined) return cached;
      const rows = new Set<number>();
      for (const condition of filter.conditions) {
        const equal = { ...filter, onlyTrusted: false, conditions: [{ ...condition, is: '=' as const }] };
        for (const row of matching(tenant, kind, equal, false)) rows.add(row);
      }
      if (sets.size >= MAX_EXCLUSIONS) sets.clear();
      if (excludedRows.size >= MAX_SETS) excludedRows.clear();
      excludedRows.set(key, sets.set(conditions, rows));
      return rows;
    },

    trusted(tenant, kind) {
      const cached = trustedOf(tenant.no, kind);
      if (cached !== undefined) return cached;
      const found = database
        .prepare(`SELECT row FROM record WHERE tenant = ? AND kind = ? AND ${TRUSTED}`)
        .all(tenant.no, kindNumber(kind));
      const rows = new Set(found.map((row) => numberOf(row['row'])));
      trustedRows.set(`${tenant.no} ${kind}`, rows);
      return rows;
    },

    delete(tenantNo, id, onCommit) {
      const old = selectHead(tenantNo, id);
      if (old === undefined) return null;
      const row = numberOf(old['row']);
      cache.drop(row);
      database.prepare('DELETE FROM record WHERE row = ?').run(row);
      const set = numberOrNull(old['vector_set']);
      if (set !== null) depart(set, row, nextSeq(), onCommit);
      const kind = kindOf(numberOf(old['kind']));
      dropExcluded(tenantNo, kind);
      onCommit(() => {
        onCount(-1);
        onText(tenantNo, kind, row, null);
        trustedOf(tenantNo, kind)?.delete(row);
      });
      return row;
    },
  };
}
