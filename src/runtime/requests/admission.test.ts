import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import { describeFailure, type Failure } from '../../server/errors.ts';
import { createAdmission } from './admission.ts';

const LIMITS = { maxRequests: 3, maxRequestsPerTenant: 2, requestsPerMinute: 60, burst: 100 };

function refused(work: () => unknown): Failure {
  try {
    work();
  } catch (error) {
    return describeFailure(error);
  }
  throw new Error('it was admitted');
}

test('a tenant has its share of places, all together have theirs; leaving twice frees one', () => {
  const admission = createAdmission(LIMITS, createManualClock());
  const leave = admission.enter('a');
  admission.enter('a');
  expect(refused(() => admission.enter('a'))).toEqual({
    status: 429,
    type: 'rate_limit_error',
    code: 'too_many_requests',
    param: null,
    message: '2 of your requests are in progress, at most 2 may be',
    retryAfterSeconds: 1,
  });
  admission.enter('b');
  expect(refused(() => admission.enter('c'))).toMatchObject({
    status: 503,
    code: 'overloaded',
    message: '3 requests are in progress, at most 3 may be',
  });
  leave();
  leave();
  expect(admission.numRequests).toBe(2);
  admission.enter('c');
  expect(refused(() => admission.enter('b')).status).toBe(503);
});

test('the rate is per tenant, refills with time, and says when the next one may come', () => {
  const clock = createManualClock();
  const admission = createAdmission({ ...LIMITS, burst: 2, requestsPerMinute: 6 }, clock);
  const ask = (tenant: string): void => admission.enter(tenant)();
  ask('a');
  ask('a');
  ask('b');
  expect(refused(() => ask('a'))).toMatchObject({
    status: 429,
    code: 'rate_limit_exceeded',
    message: 'more than 6 requests per minute; the next is allowed in 10 s',
    retryAfterSeconds: 10,
  });
  clock.advance(9_999);
  expect(refused(() => ask('a')).retryAfterSeconds).toBe(1);
  clock.advance(1);
  ask('a');
  expect(refused(() => ask('a')).retryAfterSeconds).toBe(10);
  clock.advance(3_600_000);
  ask('a');
  ask('a');
  expect(refused(() => ask('a')).retryAfterSeconds).toBe(10); // an hour saves up no more than the burst
});

test('[E1] a closed admission rejects new requests and waits for running ones, or for the deadline', async () => {
  const clock = createManualClock();
  const admission = createAdmission(LIMITS, clock);
  const leave = admission.enter('a');
  admission.close();
  expect(refused(() => admission.enter('a'))).toMatchObject({
    status: 503,
    code: 'shutting_down',
    retryAfterSeconds: 5,
  });
  let isEmpty = false;
  void admission.empty(1000).then(() => (isEmpty = true));
  await settle();
  expect(isEmpty).toBe(false);
  leave();
  await settle();
  expect(isEmpty).toBe(true);

  const stuck = createAdmission(LIMITS, clock);
  stuck.enter('a');
  const late = stuck.empty(1000);
  clock.advance(1000);
  await late;
  expect(stuck.numRequests).toBe(1);
});
