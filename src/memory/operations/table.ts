import { RuvLLMError } from '../../core/errors.ts';
import { agentOperations } from './agent-operations.ts';
import { auditOperations } from './audit-operations.ts';
import { browseOperations } from './browse-operations.ts';
import { documentOperations } from './document-operations.ts';
import { memoryOperations } from './memory-operations.ts';
import type { MemoryOperation } from './operation.ts';
import { policyOperations } from './policy-operations.ts';
import { requestOperations } from './request-operations.ts';
import { sessionOperations } from './session-operations.ts';
import { tenantOperations } from './tenant-operations.ts';
import { transferOperations } from './transfer-operations.ts';

export const MEMORY_OPERATIONS: readonly MemoryOperation[] = [
  ...memoryOperations,
  ...browseOperations,
  ...documentOperations,
  ...transferOperations,
  ...auditOperations,
  ...requestOperations,
  ...sessionOperations,
  ...policyOperations,
  ...agentOperations,
  ...tenantOperations,
];

/** The operation of a name that the code knows to exist. */
export function operationOf(name: string): MemoryOperation {
  const found = MEMORY_OPERATIONS.find((operation) => operation.name === name);
  if (found === undefined) throw new RuvLLMError('internal', `there is no operation ${name}`);
  return found;
}
