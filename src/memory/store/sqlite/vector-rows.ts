import type { VectorRows } from '../vector-sets.ts';
import type { GroupCommit } from './group-commit.ts';
import { openRow, RECORD_COLUMNS } from './record-row.ts';
import type { SqlDatabase } from './sql-database.ts';
import type { Tenants } from './tenants.ts';
import { damaged, numberOf } from '../row-values.ts';

interface VectorRowsParts {
  readonly database: SqlDatabase;
  readonly tenants: Tenants;
  readonly lastSeq: () => number;
  readonly commit: Pick<GroupCommit, 'submit' | 'flush'>;
}

export function createVectorRows({ database, tenants, lastSeq, commit }: VectorRowsParts): VectorRows {
  return {
    lastSeq,
    flush: commit.flush,
    departedSince: ({ no }, seq) =>
      database
        .prepare('SELECT DISTINCT row FROM departure WHERE vector_set = ? AND seq > ?')
        .all(no, seq)
        .map((row) => numberOf(row['row'])),
    arrivedSince({ no, dim }, seq, limit) {
      const found = database
        .prepare(`SELECT ${RECORD_COLUMNS} FROM record WHERE vector_set = ? AND seq > ? ORDER BY seq LIMIT ?`)
        .all(no, seq, limit);
      return found.map((sqlRow) => {
        const tenant = tenants.byNumber(numberOf(sqlRow['tenant']));
        const { row, head, record } = openRow(sqlRow, tenant.id, '', tenant.sealer);
        if (record.vector?.length !== dim) throw damaged(`the vector of record ${record.id} has another length`);
        return { row, seq: head.seq, vector: record.vector };
      });
    },
    saved({ no }, seq) {
      const forget = commit.submit(() =>
        database.prepare('DELETE FROM departure WHERE vector_set = ? AND seq <= ?').run(no, seq),
      );
      forget.catch(() => {}); // the next save deletes them
    },
  };
}
