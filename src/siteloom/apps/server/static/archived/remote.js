// Whether pages may load what the archive lacks from the web, which tells its sites that someone looks at them.

/** Where it is kept until the tab is closed. */
const REMOTE = "siteloom-remote";

export const isRemoteAllowed = () => sessionStorage.getItem(REMOTE) !== null;

/** Allow it from now on, or no more. @returns {boolean} whether it is allowed */
export function toggleRemote() {
  if (isRemoteAllowed()) sessionStorage.removeItem(REMOTE);
  else sessionStorage.setItem(REMOTE, "allowed");
  return isRemoteAllowed();
}
