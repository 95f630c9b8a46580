import { formatUuid, parseUuid } from '../../../core/uuid.ts';
import type { EdgeQuery, MemoryEdge } from '../../types.ts';
import type { EdgeKey } from '../check-query.ts';
import type { SqlDatabase } from './sql-database.ts';
import { checkEdgeRow, missingEnd, type NewEdge, openEdge, relationHash, sealEdge } from '../sealed-edge.ts';
import type { Tenant } from '../sealer.ts';
import { bytesOf, numberOf, textOf } from '../row-values.ts';

export interface Edges {
  put(tenant: Tenant, edges: readonly NewEdge[], nowMs: number): void;
  find(tenant: Tenant, query: EdgeQuery): readonly MemoryEdge[];
  delete(tenant: Tenant, keys: readonly EdgeKey[]): number;
  deleteOf(row: number): void;
  /** Throws for a damaged edge; returns their number. */
  check(tenant: Tenant): number;
}

const idOf = (value: unknown): string => formatUuid(bytesOf(value));

const COLUMNS = `edge.source, edge.target, edge.relation, edge.weight, edge.updated_ms, edge.sealed,
  a.id AS source_id, b.id AS target_id`;
const JOINS = 'edge JOIN record AS a ON a.row = edge.source JOIN record AS b ON b.row = edge.target';

export function createEdges(database: SqlDatabase): Edges {
  const rowOf = (tenant: Tenant, id: string): number | null => {
    const row = database.prepare('SELECT row FROM record WHERE tenant = ? AND id = ?').all(tenant.no, parseUuid(id))[0];
    return row === undefined ? null : numberOf(row['row']);
  };

  const rowsOf = (tenant: Tenant, ids: readonly string[]): readonly number[] =>
    database
      .prepare('SELECT row FROM record WHERE tenant = ? AND id IN (SELECT unhex(value) FROM json_each(?))')
      .all(tenant.no, JSON.stringify(ids.map((id) => id.replaceAll('-', ''))))
      .map((row) => numberOf(row['row']));

  /** Relations of a tenant's edges, also deleted ones: most searches ask for a relation that no edge has. */
  const usedRelations = new WeakMap<Tenant, Set<string>>();
  function relationsOf(tenant: Tenant): ReadonlySet<string> {
    let used = usedRelations.get(tenant);
    if (used === undefined) {
      const rows = database.prepare('SELECT DISTINCT relation FROM edge WHERE tenant = ?').all(tenant.no);
      used = new Set(rows.map((row) => textOf(row['relation'])));
      usedRelations.set(tenant, used);
    }
    return used;
  }

  const endOf = (tenant: Tenant, id: string): number => {
    const row = rowOf(tenant, id);
    if (row === null) throw missingEnd(id);
    return row;
  };

  return {
    put(tenant, edges, nowMs) {
      const statement = database.prepare(
        'INSERT OR REPLACE INTO edge (source, target, relation, tenant, weight, updated_ms, sealed) VALUES (?, ?, ?, ?, ?, ?, ?)',
      );
      for (const edge of edges) {
        const [source, target] = [endOf(tenant, edge.from), endOf(tenant, edge.to)];
        const { hash, sealed } = sealEdge(tenant, edge, nowMs);
        usedRelations.get(tenant)?.add(hash);
        statement.run(source, target, hash, tenant.no, edge.weight, nowMs, sealed);
      }
    },

    find(tenant, { ids, direction, relations, limit }) {
      const hashes = relations
        ?.map((relation) => relationHash(tenant, relation))
        .filter((hash) => relationsOf(tenant).has(hash));
      if (hashes?.length === 0) return [];
      const rows = rowsOf(tenant, ids);
      const ends = { out: ['source'], in: ['target'], both: ['source', 'target'] }[direction];
      const only = hashes === undefined ? '' : 'AND relation IN (SELECT value FROM json_each(?))';
      // UNION instead of OR: each part uses its own index.
      const keys = ends.map(
        (end) => `SELECT source, target, relation FROM edge WHERE ${end} IN (SELECT value FROM json_each(?)) ${only}`,
      );
      const values = ends.flatMap(() =>
        [rows, ...(hashes === undefined ? [] : [hashes])].map((list) => JSON.stringify(list)),
      );
      const sql = `SELECT ${COLUMNS} FROM (${keys.join(' UNION ')}) AS k JOIN edge ON edge.source = k.source
        AND edge.target = k.target AND edge.relation = k.relation
        JOIN record AS a ON a.row = edge.source JOIN record AS b ON b.row = edge.target
        ORDER BY edge.weight DESC, source_id, target_id, edge.relation LIMIT ?`;
      return database
        .prepare(sql)
        .all(...values, limit)
        .map((row) => openEdge(row, tenant, idOf));
    },

    delete(tenant, keys) {
      const statement = database.prepare('DELETE FROM edge WHERE source = ? AND target = ? AND relation = ?');
      let count = 0;
      for (const { from, to, relation } of keys) {
        const [source, target] = [rowOf(tenant, from), rowOf(tenant, to)];
        if (source === null || target === null) continue;
        count += statement.run(source, target, relationHash(tenant, relation)).numChanges;
      }
      return count;
    },

    deleteOf(row) {
      database.prepare('DELETE FROM edge WHERE source = ?').run(row);
      database.prepare('DELETE FROM edge WHERE target = ?').run(row);
    },

    check(tenant) {
      const rows = database.prepare(`SELECT ${COLUMNS} FROM ${JOINS} WHERE edge.tenant = ?`).all(tenant.no);
      for (const row of rows) checkEdgeRow(row, tenant, idOf);
      return rows.length;
    },
  };
}
