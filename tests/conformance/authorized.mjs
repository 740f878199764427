// Makes every request of the suite's one of a client that has a token (BULKHEAD_TOKEN), unless it brings its own: the
// suite itself knows of no token for a server that it tests.
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { Agent, setGlobalDispatcher } from 'undici';

const authorization = `Bearer ${process.env.BULKHEAD_TOKEN}`;

function withToken(headers) {
  if (Array.isArray(headers)) {
    const names = headers.filter((_, index) => index % 2 === 0);
    return names.some((name) => String(name).toLowerCase() === 'authorization')
      ? headers
      : [...headers, 'authorization', authorization];
  }
  const all = headers?.[Symbol.iterator] ? Object.fromEntries(headers) : { ...headers };
  const names = Object.keys(all).map((name) => name.toLowerCase());
  return names.includes('authorization') ? all : { ...all, authorization };
}

setGlobalDispatcher(
  new Agent().compose(
    (dispatch) => (options, handler) => dispatch({ ...options, headers: withToken(options.headers) }, handler),
  ),
);

const request = http.request;
http.request = (...what) => {
  const made = request(...what);
  if (!made.hasHeader('authorization')) {
    made.setHeader('authorization', authorization);
  }
  return made;
};
syncBuiltinESMExports();
