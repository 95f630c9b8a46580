import { lookup as systemLookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { RuvLLMError } from '../../../core/errors.ts';

type Lookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

/** IPv4 networks that are not the public Internet: this host, local networks, cloud metadata, tests, multicast. */
const PRIVATE_V4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`;
/** The assigned part of the IPv6 Internet, and what holds IPv4 addresses: mapped ones, and those behind NAT64. */
const PUBLIC_V6 = '2000::/3 ::ffff:0:0/96 64:ff9b::/96';
/** Parts of that which are tunnels, tests or documentation. */
const PRIVATE_V6 = '2001::/23 2001:db8::/32 2002::/16 3fff::/20';

function blockListOf(networks: string, family: 'ipv4' | 'ipv6', wrappers: readonly string[] = ['']): BlockList {
  const list = new BlockList();
  for (const network of networks.split(/\s+/)) {
    const [address, prefix] = network.split('/') as [string, string];
    for (const wrapper of wrappers) {
      if (wrapper === '') list.addSubnet(address, Number(prefix), family);
      else list.addSubnet(`${wrapper}${address}`, 96 + Number(prefix), 'ipv6');
    }
  }
  return list;
}
const privateV4 = blockListOf(PRIVATE_V4, 'ipv4', ['', '::ffff:', '64:ff9b::']);
const publicV6 = blockListOf(PUBLIC_V6, 'ipv6');
const privateV6 = blockListOf(PRIVATE_V6, 'ipv6');

/** Whether an IP address belongs to the public Internet. */
export function isPublicAddress(address: string): boolean {
  const [bare] = address.split('%') as [string]; // without the zone
  const family = isIP(bare);
  if (family === 4) return !privateV4.check(bare, 'ipv4');
  if (family !== 6 || !publicV6.check(bare, 'ipv6')) return false;
  return !privateV6.check(bare, 'ipv6') && !privateV4.check(bare, 'ipv6');
}

/** Does not say which address a name has: whoever sent it must not learn the names of the server's network. */
const refuse = (host: string): RuvLLMError =>
  new RuvLLMError('download_failed', `${host}: refused to connect, because its address is not public`, {
    data: { host, isPrivate: true },
  });

/** The host of a URL as an address; null: a name. URLs spell every form of an IPv4 address with four decimal numbers. */
function addressOf(hostname: string): string | null {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return isIP(bare) === 0 ? null : bare;
}

/** Names of this host, which not every resolver knows with a dot at the end. */
const isLocalName = (hostname: string): boolean => /(^|\.)localhost\.?$/i.test(hostname);

/** A request that connects only to public addresses; GET by default. The checked address is the one that is connected to. */
export function fetchPublic(
  url: string,
  {
    method = 'GET',
    headers,
    body: sentBody = null,
    signal,
  }: Pick<RequestInit, 'method' | 'headers' | 'body' | 'signal'>,
  { lookup = systemLookup, isAllowed = isPublicAddress }: { lookup?: Lookup; isAllowed?: typeof isPublicAddress } = {},
): Promise<Response> {
  const { protocol, hostname, host } = new URL(url);
  const lookupPublic: LookupFunction = (name, options, callback) => {
    if (isLocalName(name) && !isAllowed('127.0.0.1')) return callback(refuse(host), [], 0);
    lookup(name, { ...options, all: true }, (error, addresses) => {
      const isRefused = addresses?.some(({ address }) => !isAllowed(address));
      if (error !== null) callback(error, [], 0);
      else if (isRefused) callback(refuse(host), [], 0);
      else if (options.all === true) callback(null, addresses);
      else callback(null, addresses[0]!.address, addresses[0]!.family);
    });
  };
  const address = addressOf(hostname); // is not looked up
  if (address !== null && !isAllowed(address)) return Promise.reject(refuse(host));
  return new Promise((resolve, reject) => {
    const options: RequestOptions = {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      lookup: lookupPublic,
      agent: false, // a shared connection may have been opened without the check
      ...(signal == null ? {} : { signal }),
    };
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)(url, options, (incoming) => {
      const replyHeaders = new Headers();
      for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
        replyHeaders.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
      }
      const status = incoming.statusCode!;
      const hasBody = status !== 204 && status !== 304;
      const body = hasBody ? (Readable.toWeb(incoming) as ReadableStream<Uint8Array>) : null;
      resolve(new Response(body, { status, headers: replyHeaders }));
    });
    request.on('error', reject);
    if (sentBody === null) request.end();
    else if (typeof sentBody === 'string' || sentBody instanceof Uint8Array) request.end(sentBody);
    else if (sentBody instanceof ReadableStream) {
      const stream = Readable.fromWeb(sentBody as Parameters<typeof Readable.fromWeb>[0]);
      stream.on('error', (error) => request.destroy(error));
      stream.pipe(request);
    } else request.destroy(new Error('a body of this kind is not supported'));
  });
}
