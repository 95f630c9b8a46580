import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import { describeFailure, type Failure } from './errors.ts';
import { createTenantGate } from './tenant-gate.ts';

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
  const gate = createTenantGate(LIMITS, createManualClock());
  const leave = gate.enter('a');
  gate.enter('a');
  expect(refused(() => gate.enter('a'))).toEqual({
    status: 429,
    type: 'rate_limit_error',
    code: 'too_many_requests',
    param: null,
    message: '2 of your requests are in progress, at most 2 may be',
    retryAfterSeconds: 1,
  });
  gate.enter('b');
  expect(refused(() => gate.enter('c'))).toMatchObject({
    status: 503,
    code: 'overloaded',
    message: '3 requests are in progress, at most 3 may be',
  });
  leave();
  leave();
  expect(gate.numRequests).toBe(2);
  gate.enter('c');
  expect(refused(() => gate.enter('b')).status).toBe(503);
});

test('the rate is per tenant, refills with time, and says when the next one may come', () => {
  const clock = createManualClock();
  const gate = createTenantGate({ ...LIMITS, burst: 2, requestsPerMinute: 6 }, clock);
  const ask = (tenant: string): void => gate.enter(tenant)();
  ask('a');
  ask('a');
  ask('b');
  expect(refused(() => ask('a'))).toMatchObject({
    status: 429,
    code: 'rate_limit_exceeded',
    message: 'more than 6 requests a minute; the next is allowed in 10 s',
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

test('[E1] a closed gate lets nobody in and waits for those inside, or for the deadline', async () => {
  const clock = createManualClock();
  const gate = createTenantGate(LIMITS, clock);
  const leave = gate.enter('a');
  gate.close();
  expect(refused(() => gate.enter('a'))).toMatchObject({ status: 503, code: 'shutting_down', retryAfterSeconds: 5 });
  let isEmpty = false;
  void gate.empty(1000).then(() => (isEmpty = true));
  await settle();
  expect(isEmpty).toBe(false);
  leave();
  await settle();
  expect(isEmpty).toBe(true);

  const stuck = createTenantGate(LIMITS, clock);
  stuck.enter('a');
  const late = stuck.empty(1000);
  clock.advance(1000);
  await late;
  expect(stuck.numRequests).toBe(1);
});
