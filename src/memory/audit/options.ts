import { choiceOption, integerOption, numberOption, resolveOptions, stringOption } from '../../core/options.ts';

export interface AuditLogOptions {
  /** Entries that are written together. Default 100. */
  readonly batchEntries?: number;
  /** Longest an entry waits to be written. Default 1000. */
  readonly batchMs?: number;
  /** Default 10 000. */
  readonly queueEntries?: number;
  /** Text and vectors that may wait. Default 64 MiB. */
  readonly queueBytes?: number;
  /** What happens when the queue is full: entries are dropped and counted, or `enqueue` gives a promise. Default `drop`. */
  readonly overflow?: 'drop' | 'wait';
  /** Tenant that holds what the log knows of itself. Default `ruvllm`. */
  readonly stateTenant?: string;
  /**
   * How long a run may be silent before another takes it for dead. Default 0: the store is this process's alone, and a run that is
   * open at the start is a run that crashed.
   */
  readonly leaseMs?: number;
  /** Similar earlier queries an entry is linked to; 0 for none. Default 3. */
  readonly numSimilar?: number;
  /** From which cosine on. Default 0.85. */
  readonly minSimilarity?: number;
}
export type ResolvedAuditLogOptions = Required<AuditLogOptions>;

export function resolveAuditLogOptions(options?: AuditLogOptions): Readonly<ResolvedAuditLogOptions> {
  return resolveOptions<ResolvedAuditLogOptions>('audit log', options, {
    // A call of the store takes 1000 records: the entries, the head and the run.
    batchEntries: integerOption(100, 1, 900),
    batchMs: integerOption(1000, 1, 3_600_000),
    queueEntries: integerOption(10_000, 1, 1_000_000),
    queueBytes: integerOption(64 * 2 ** 20, 1024, 2 ** 34),
    overflow: choiceOption('drop', ['drop', 'wait']),
    stateTenant: stringOption('ruvllm'),
    leaseMs: integerOption(0, 0, 86_400_000),
    numSimilar: integerOption(3, 0, 50),
    minSimilarity: numberOption(0.85, -1, 1),
  });
}
