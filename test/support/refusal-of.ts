import { describeFailure, type Failure } from '../../src/server/errors.ts';

/** What a client reads if `read` throws; null: it does not throw. */
export function refusalOf(read: () => unknown): Pick<Failure, 'status' | 'code' | 'param' | 'message'> | null {
  try {
    read();
  } catch (error) {
    const { status, code, param, message } = describeFailure(error);
    return { status, code, param, message };
  }
  return null;
}
