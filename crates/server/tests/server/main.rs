//! What clients of the server are promised, one file a promise. All of them are one program, as each
//! program would hold the server and the query engine anew: a quarter of a gigabyte of disk, and the time
//! to link it.

#![allow(clippy::unwrap_used)]

mod common;
mod held_disk;
mod lake_world;
mod postgresql;
mod query_generator;

mod a_lake_catalogue_is_shared;
mod a_server_stops_in_good_order;
mod acknowledged_commits_survive_a_kill;
mod bad_input_ends_one_connection_at_most;
mod checks_hold_whichever_way_a_row_comes;
mod clients_are_met_with_encryption;
mod clients_are_seen_with_what_they_wait_for;
mod clients_tell_each_other;
mod columns_take_what_postgresql_casts;
mod commits_are_counted_as_clients_count_them;
mod commits_wait_for_the_archive;
mod connections_have_bounded_memory;
mod definitions_go_with_their_transaction;
mod definitions_match_a_model;
mod definitions_survive_crashes;
mod domains_hold_for_all_columns_of_them;
mod dumps_go_both_ways;
mod durable_answers_rest_on_what_is_durable;
mod errors_have_their_sqlstate;
mod expressions_give_what_postgresql_gives;
mod functions_take_constants_as_postgresql_does;
mod generated_statements_give_what_postgresql_gives;
mod indexes_are_built_while_clients_write;
mod keys_are_added_to_tables;
mod long_statements_are_answered;
mod long_values_go_through;
mod members_have_the_rights_of_their_roles;
mod names_mean_what_they_mean_in_postgresql;
mod no_clause_is_passed_over_in_silence;
mod no_row_of_a_lake_is_missing_or_twice;
mod pipelines_are_all_or_nothing;
mod prepared_statements_follow_altered_tables;
mod prepared_statements_take_parameters_of_every_type;
mod psql_and_pgbench_are_served;
mod psql_commands_show_what_there_is;
mod queries_give_the_rows_that_are_written_down;
mod queries_have_bounded_memory;
mod queries_read_the_lake_and_the_table_as_one;
mod roles_come_in_by_password_and_do_what_was_granted;
mod rows_are_copied_in_and_out;
mod rows_are_waited_for;
mod rows_go_into_another_database;
mod sequences_give_each_number_once;
mod serializable_transactions_could_have_run_alone;
mod statements_of_a_simple_query_do_what_they_say;
mod statements_of_one_shape_share_a_plan;
mod tables_are_rewritten_online;
mod tables_go_into_a_lake;
mod tables_stand_in_schemas;
mod temporary_tables_are_of_one_client;
mod the_operator_is_told_of_the_disk;
mod transactions_are_all_or_nothing;
mod transactions_are_as_large_as_the_disk;
mod views_stay_what_they_are;
mod what_drivers_send_is_understood;
mod wrong_values_have_their_sqlstate;
