// What the sender of this tab may do, as the server says. Pages hide the rest; the server decides.
import { useEffect } from "preact/hooks";
import { connection, usePoll } from "./api";

export interface Identity { protected: boolean; subject: string | null; role: string | null; allow: string | null; operations: string[] }

let operations = new Set<string>();

/** Whether the operation of the server (its name in GET /api/v1/identity) is permitted for at least one queue or tenant. */
export const may = (operation: string) => operations.has(operation);

/** Loads the identity now, after a login, and once a minute, because a role may change. */
export function useIdentity() {
    const me = usePoll<Identity>("api/v1/identity", 60000);
    useEffect(() => {
        if (!connection.state.denied) me.reload();
    }, [connection.state.denied]);
    if (me.data) operations = new Set(me.data.operations);
    return me;
}
