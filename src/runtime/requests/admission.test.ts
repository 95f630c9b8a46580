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

test('[E1] waiting for an empty admission ends at once, or with the last of several requests', async () => {
  const admission = createAdmission(LIMITS, createManualClock());
  await admission.empty(1000);
  const [first, second] = [admission.enter('a'), admission.enter('b')];
  admission.close();
  expect(admission.isLeaving).toBe(true);
  let isEmpty = false;
  void admission.empty(1000).then(() => (isEmpty = true));
  first();
  await settle();
  expect(isEmpty).toBe(false);
  second();
  await settle();
  expect(isEmpty).toBe(true);
});

test('a request that is not admitted can be sent again', () => {
  const admission = createAdmission({ ...LIMITS, maxRequestsPerTenant: 1 }, createManualClock());
  admission.enter('a');
  expect(() => admission.enter('a')).toThrow(
    expect.objectContaining({ isRetryable: true, data: { retryAfterSeconds: 1 } }),
  );
});

test('requests that other processes admitted count, with no more debt than the burst', () => {
  const clock = createManualClock();
  const admitted = new Map([['a', 0]]);
  let numRunning = 0;
  const outside = {
    numRequests: () => numRunning,
    takeAdmitted(tenant: string) {
      const count = admitted.get(tenant) ?? 0;
      admitted.set(tenant, 0);
      return count;
    },
  };
  const admission = createAdmission({ ...LIMITS, burst: 4, requestsPerMinute: 60 }, clock, outside);
  numRunning = 1;
  const leave = admission.enter('a');
  expect(refused(() => admission.enter('a'))).toMatchObject({ code: 'too_many_requests', message: '2 of your requests are in progress, at most 2 may be' }); // prettier-ignore
  leave();
  admitted.set('a', 3);
  expect(refused(() => admission.enter('a')).retryAfterSeconds).toBe(1); // 4 - 1 - 3
  admitted.set('a', 100);
  expect(refused(() => admission.enter('a')).retryAfterSeconds).toBe(5); // a burst of debt, and one for itself
});

test('a tenant is forgotten when it is told to be, but not while it has requests', () => {
  const admission = createAdmission({ ...LIMITS, burst: 1, requestsPerMinute: 1 }, createManualClock());
  const leave = admission.enter('a');
  admission.forget('a');
  admission.forget('unknown');
  expect(refused(() => admission.enter('a')).code).toBe('rate_limit_exceeded');
  leave();
  admission.forget('a');
  admission.enter('a');
});

test('of ten thousand tenants none is forgotten that has requests or has used its rate', () => {
  const clock = createManualClock();
  const limits = { maxRequests: 100, maxRequestsPerTenant: 1, requestsPerMinute: 60, burst: 1 };
  const admission = createAdmission(limits, clock);
  const leaveRunning = admission.enter('running');
  clock.advance(60_000);
  admission.enter('used')();
  for (let i = 0; i < 9_999; i++) admission.enter(`tenant ${i}`)();
  expect(refused(() => admission.enter('running')).code).toBe('too_many_requests');
  expect(refused(() => admission.enter('used')).code).toBe('rate_limit_exceeded');
  leaveRunning();
  admission.enter('running');
});

test('[E3] while it says that it leaves, an admission lets requests in until it is closed', () => {
  const admission = createAdmission(LIMITS, createManualClock());
  expect(admission.isLeaving).toBe(false);
  admission.leave();
  expect(admission.isLeaving).toBe(true);
  admission.enter('a')();
  admission.close();
  expect(() => admission.enter('a')).toThrow('the server is shutting down');
});
