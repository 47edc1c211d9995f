// request.c: sends any request and prints the answer.
//
//      request http://localhost:6632 GET /health
//      request https://queen.example POST /api/v1/push --ca ca.pem --body '{"items": []}'
#include <stdio.h>
#include <string.h>

#include <queen/client.h>

int main(int argc, char **argv)
{
    struct queen_error err;
    struct queen_options options = {.url = argc > 1 ? argv[1] : NULL};
    struct queen_request request = {0};

    if (argc < 4) {
        fprintf(stderr,
                "usage: %s URL METHOD PATH [--ca FILE] [--insecure] [--compress] "
                "[--token-file FILE] [--body JSON]\n",
                argv[0]);
        return 2;
    }
    request.method = argv[2];
    request.path = argv[3];
    for (int i = 4; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--insecure") == 0) {
            options.insecure = true;
        } else if (strcmp(argv[i], "--compress") == 0) {
            options.compress = true;
        } else if (strcmp(argv[i], "--ca") == 0) {
            options.ca_file = value, i++;
        } else if (strcmp(argv[i], "--token-file") == 0) {
            options.token_file = value, i++;
        } else if (strcmp(argv[i], "--body") == 0) {
            request.body = value, i++;
            request.body_len = strlen(value);
        }
    }
    struct queen_client *client = queen_client_new(&options, &err);
    struct queen_response *r = client ? queen_request(client, &request, &err) : NULL;
    if (err.code != 0)
        fprintf(stderr, "%s (%d): %s\n", queen_code_name(err.code), err.http_status, err.text);
    else
        printf("%s\n", r->body);
    queen_response_free(r);
    queen_client_free(client);
    return err.code == 0 ? 0 : 1;
}
